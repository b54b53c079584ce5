"""What the store knows its cold store: which entries are in which block."""
