"""A session by itself: PING, HELLO, CLIENT, MULTI."""
