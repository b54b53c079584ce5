"""Subscribers: processes, durable subscribers, and the names that they hold."""
