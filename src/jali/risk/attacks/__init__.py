"""What known attacks learn from a release, for whoever holds the original."""
