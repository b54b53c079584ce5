"""Communication among the workers of one server, so that it answers as one."""
