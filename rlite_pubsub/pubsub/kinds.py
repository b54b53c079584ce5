"""The three kinds of live names. They differ by these records, not by copies of code."""

from __future__ import annotations

from typing import Final


class Kind:
    """One kind of name that a session can hold."""

    __slots__ = ("database", "index", "message", "subscribed", "unsubscribed")

    def __init__(self, index: int, database: str, subscribed: bytes, unsubscribed: bytes, message: bytes) -> None:
        self.index: Final = index
        """Its place in `Session.names` and `Hub.holders`."""
        self.database: Final = database
        """Its database in live.mdb."""
        self.subscribed: Final = subscribed
        """The word that confirms a subscription."""
        self.unsubscribed: Final = unsubscribed
        """The word that confirms its end."""
        self.message: Final = message
        """The word that a message begins with."""


CHANNELS: Final = Kind(0, "channels", b"subscribe", b"unsubscribe", b"message")
PATTERNS: Final = Kind(1, "patterns", b"psubscribe", b"punsubscribe", b"pmessage")
SHARDS: Final = Kind(2, "shards", b"ssubscribe", b"sunsubscribe", b"smessage")

KINDS: Final = (CHANNELS, PATTERNS, SHARDS)
