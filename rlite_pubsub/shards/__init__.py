"""A sharded store: founding it, and moving slots between its members."""
