"""What the store knows of its cold store: which entries are in which block."""
