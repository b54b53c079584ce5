"""The ids and the bytes of the entries that are appended to a topic.

Ids grow. An entry without an id of its own gets the time, or the id after the last one if the clock stands still, or
has gone back.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlite_pubsub.protocol.encoder import bulk_array
from rlite_pubsub.storage.topics.entry_ids import PART_MAX, Id


def next_id(last: Id, now_ms: int, count: int = 1) -> Id | None:
    """Return the first of `count` ids behind the last one, all of one millisecond; None: there are not so many left."""
    ms, seq = last
    if now_ms > ms:
        return now_ms, 0
    if seq <= PART_MAX - count:
        return ms, seq + 1
    return (ms + 1, 0) if ms < PART_MAX else None


def encode_entry(entry_id: Id, fields: Sequence[bytes]) -> bytes:
    """Return an entry as XRANGE sends it: an array of its id and the array of its fields and values."""
    text = b"%d-%d" % entry_id
    return b"*2\r\n$%d\r\n%b\r\n%b" % (len(text), text, bulk_array(tuple(fields)))


def encode_run(first: Id, bodies: list[bytes], before: bytes = b"", behind: bytes = b"") -> list[bytes]:
    """Entries whose ids follow each other within one millisecond, from `first` on. What each of them has is an array in
    wire format: its own body between what all of them have `before` it and `behind` it."""
    ms, at = first
    limit = 0  # up to here ids have as many digits, so that entries begin alike
    head = b""
    entries: list[bytes] = []
    for body in bodies:
        if at >= limit:
            digits = len(str(at))
            limit = 10**digits
            head = b"*2\r\n$%d\r\n%d-" % (len(str(ms)) + 1 + digits, ms)
        entries.append(b"%b%d\r\n%b%b%b" % (head, at, before, body, behind))
        at += 1
    return entries
