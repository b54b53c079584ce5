"""`rlite-pubsub serve`."""
