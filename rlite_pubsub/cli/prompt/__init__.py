"""`rlite-pubsub cli`: what redis-cli is, for servers and for stores without one."""
