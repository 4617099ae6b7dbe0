"""What an attacker learns who holds two releases of one table."""
