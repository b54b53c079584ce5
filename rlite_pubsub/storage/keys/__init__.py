"""Keys and their values."""
