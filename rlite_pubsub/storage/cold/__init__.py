"""The store's knowledge of its cold store: which entries are in which block."""
