"""Notification of changed keys: WATCH, CLIENT TRACKING and keyspace events."""
