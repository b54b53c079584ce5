"""QUEUE.*: queues with their whole history. An extension."""
