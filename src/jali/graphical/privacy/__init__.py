"""Whether a collection of marginals is safe, judged as a whole."""
