"""Keys and what they hold."""
