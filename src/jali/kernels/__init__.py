"""Compiled loops. The only room that knows numba."""
