"""Who subscribes to what: processes, durable subscribers, and the names that they hold."""
