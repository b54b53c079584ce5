"""The engine: the parts put together, the turn, sessions, and the way of a request."""
