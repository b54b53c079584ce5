"""The three kinds of live names. They differ by these records, not by copies of code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of name that a session can hold."""

    index: int
    """Its place in `Session.names` and `Hub.holders`."""
    database: str
    """Its database in live.mdb."""
    subscribed: bytes
    """The word that confirms a subscription."""
    unsubscribed: bytes
    """The word that confirms its end."""
    message: bytes
    """The word that a message begins with."""


CHANNELS = Kind(0, "channels", b"subscribe", b"unsubscribe", b"message")
PATTERNS = Kind(1, "patterns", b"psubscribe", b"punsubscribe", b"pmessage")
SHARDS = Kind(2, "shards", b"ssubscribe", b"sunsubscribe", b"smessage")

KINDS = (CHANNELS, PATTERNS, SHARDS)
