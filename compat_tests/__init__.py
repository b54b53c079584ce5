"""One body of tests, run against this server and against the real redis-server: a difference is a bug of ours."""
