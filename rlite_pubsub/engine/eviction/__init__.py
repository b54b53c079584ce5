"""`maxmemory`: which keys go so that the rest stays within it."""
