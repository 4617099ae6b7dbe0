"""What an analyst loses, for whoever holds the original."""
