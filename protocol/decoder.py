"""Bytes -> replies: what a command has as the wire wants it, as the values that it is made of."""

from __future__ import annotations

import hiredis

from rlite_pubsub.protocol.replies import Encoded, Reply, Status


def decode(reply: Encoded) -> Reply:
    """One whole reply: a simple string, or strings, integers, nulls and arrays of these."""
    if reply[:1] == b"+":
        return Status(reply[1:-2])
    reader = hiredis.Reader()
    reader.feed(bytes(reply))
    return reader.gets()
