"""What known attacks learn from a release, for the holder of the original."""
