"""Groups that hide who is in a table."""
