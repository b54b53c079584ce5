"""Durable subscribers: their names and their messages outlive connections, processes and reboots."""
