"""A sharded whole: founding it, and moving slots between its members."""
