"""Open streams: Server-Sent Events of events, topics and channels."""
