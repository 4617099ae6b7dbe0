"""Engines: what holds a table and touches its rows in our place. One counts distinct combinations and writes rows."""
