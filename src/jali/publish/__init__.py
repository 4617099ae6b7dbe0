"""The verbs: check the request, search, make a release."""
