"""Sorted sets."""
