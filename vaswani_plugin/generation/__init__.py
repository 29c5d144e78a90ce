"""Search for the best translation."""
