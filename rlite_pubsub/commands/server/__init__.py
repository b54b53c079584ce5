"""The server itself: INFO, CONFIG, ACL, DEBUG, COMMAND and what Redis has that we have not."""
