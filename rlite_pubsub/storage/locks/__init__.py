"""The locks of writers, between processes and between threads, and the order in which writers wait."""
