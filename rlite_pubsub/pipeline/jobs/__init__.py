"""Bulk work on topics: one job in each file, with its options declared beside it.

A job has `plan(options)`, which looks and changes nothing, and `run(...)`; both return an `Outcome`. What it does to
entries is a function from DataFrame to DataFrame of its own, for programs that have a DataFrame already.
"""
