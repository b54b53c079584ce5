"""TOPIC.*: what topics have beyond Redis's streams. Ours."""
