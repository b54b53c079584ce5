"""`rlite-pubsub doctor`: whether a store, or a server, is well."""
