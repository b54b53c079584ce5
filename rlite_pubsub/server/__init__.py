"""Sockets, sessions and lifecycle."""
