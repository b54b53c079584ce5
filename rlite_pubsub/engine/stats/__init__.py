"""What is counted, timed and logged, and what INFO tells of it."""
