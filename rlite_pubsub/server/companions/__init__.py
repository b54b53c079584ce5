"""Processes that a server starts beside itself, for work that would keep its loop: sealing, backups, RDB files."""
