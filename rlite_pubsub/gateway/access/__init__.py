"""Access over HTTP: tokens, users, origins."""
