"""Releases of several tables that a number links: buckets and ANGEL."""
