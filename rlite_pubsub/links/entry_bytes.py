"""Entries as TOPIC.APPEND takes them: in the bytes in which XRANGE sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlite_pubsub.protocol.encoder import bulk_array

Entry = Sequence[Any]
"""Its id, or * for a new one; the list of its fields and values. A list, as in a reply, or a tuple."""


def pack_entries(entries: Sequence[Entry]) -> bytes:
    """Return their bytes, one behind another."""
    parts = []
    for entry in entries:
        entry_id: bytes = entry[0]
        words: list[bytes] = entry[1]
        parts.append(b"*2\r\n$%d\r\n%b\r\n%b" % (len(entry_id), entry_id, bulk_array(words)))
    return b"".join(parts)
