"""What a published cell may stand for: sets, intervals, masks, and how two of them overlap."""
