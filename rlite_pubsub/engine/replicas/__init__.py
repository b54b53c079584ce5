"""Replicas of this store: what they are told of each commit, and how far each of them is."""
