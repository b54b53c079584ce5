"""Sorted sets of places."""
