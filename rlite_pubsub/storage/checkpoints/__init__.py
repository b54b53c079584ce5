"""Surviving a power cut: the checkpoints of an environment, and when they are taken."""
