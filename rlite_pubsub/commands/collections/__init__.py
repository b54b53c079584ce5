"""Lists and sets."""
