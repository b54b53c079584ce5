"""QUEUE.*: queues with their whole history. Ours."""
