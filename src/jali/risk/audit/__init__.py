"""What an attacker can learn from a release, from its published tables alone."""
