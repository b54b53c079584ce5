"""Counters, timings and logs, and INFO's sections about them."""
