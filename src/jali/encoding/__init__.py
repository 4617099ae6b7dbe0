"""Codes, domains and hierarchies: a table as integers, reduced to its distinct combinations."""
