"""The Spark session: quick to start, plain about failures, tidy when it ends."""
