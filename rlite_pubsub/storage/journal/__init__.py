"""Turns that are acknowledged and not yet in data.mdb: the file that has them, and the commit that they share."""
