"""Small tools that every room may use: files, text, charts, progress, programs."""
