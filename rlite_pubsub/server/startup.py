"""Why a server did not start."""

from __future__ import annotations


class StartupError(Exception):
    """The server cannot start; the message says why, in redis-server's words where it has some."""
