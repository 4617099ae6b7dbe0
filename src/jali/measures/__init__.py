"""Measures of what an analyst loses; they need the original table."""
