"""Every method at a range of strengths, and the one to take."""
