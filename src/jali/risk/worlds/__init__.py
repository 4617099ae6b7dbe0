"""The chance of a fact over all worlds that a release allows."""
