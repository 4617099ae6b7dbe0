"""The studio: the whole way from a table to a release in a browser on the same machine; it computes nothing itself."""
