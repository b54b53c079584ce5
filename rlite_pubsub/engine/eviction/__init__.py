"""`maxmemory`: which keys are evicted to stay within it."""
