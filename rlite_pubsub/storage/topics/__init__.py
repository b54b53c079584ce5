"""Entries of topics, and the other records of each topic."""
