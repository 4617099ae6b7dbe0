"""Searches for groups that keep a promise: any search takes any principle that it can honour."""
