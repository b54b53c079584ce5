"""RESP2 and RESP3, sans I/O: bytes -> requests, replies -> bytes."""
