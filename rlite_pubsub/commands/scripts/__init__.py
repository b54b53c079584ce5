"""Scripts and functions."""
