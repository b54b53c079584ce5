"""TOPIC.*: what topics have beyond Redis's streams. An extension."""
