"""Keys of any type."""
