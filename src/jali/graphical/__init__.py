"""Anonymized marginals: collections of generalized marginals, their interaction graphs, maximum entropy, privacy."""
