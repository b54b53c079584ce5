"""Waits of sessions: for keys that others change, the cold store, the disk, a time, the end of a pause."""
