"""Entries of topics, and what is known of each topic beside them."""
