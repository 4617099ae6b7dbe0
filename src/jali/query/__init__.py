"""The small query language: conditions as values, their text, and which values satisfy them."""
