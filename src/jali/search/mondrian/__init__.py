"""Multidimensional partitioning."""
