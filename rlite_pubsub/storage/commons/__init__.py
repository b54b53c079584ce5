"""What all processes of a store have in common: settings, users, libraries of functions, and the keys that have
changed, for processes that track them."""
