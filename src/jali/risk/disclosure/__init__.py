"""The most that an attacker who knows k more facts can learn."""
