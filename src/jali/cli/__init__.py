"""The command line: shows what the library computes, and computes nothing of its own."""
