"""The log of a store: what is committed and not in LMDB yet, and transactions over both."""
