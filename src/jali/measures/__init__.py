"""What an analyst loses, computed by the holder of the original."""
