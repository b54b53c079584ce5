"""The directory of a queue that is spread over several stores: its closed segments, in the order of their ids, and the
segments that nobody needs any more.

    key  '2', topic u64, last id (16 bytes)    value  first id (16 bytes), entries u64, bytes u64, entries and bytes of
                                                      this segment and all before it u64 u64, entries ever added to the
                                                      queue before its first u64 and up to its last u64, name
    key  '2', 0 u64, digest (16 bytes)         value  the name of a segment's key that is to be removed, wherever it is

No topic has the number 0. A segment has all entries of its queue up to its last id that are above the last id of the
segment before it; what is above the last segment is under the queue's own key.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import SEGMENTS
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_TOPIC = Struct(">Q")
_BODY = Struct(">QQ6Q")
_NEEDLESS = SEGMENTS + bytes(8)
_DIGEST_BYTES = 16


class Segment(NamedTuple):
    """One closed segment."""

    name: bytes
    """Of its key."""
    first: Id
    """The lowest id that it had when it was closed; above `last` if it had none."""
    last: Id
    entries: int
    size_bytes: int
    entries_so_far: int
    """With those of the segments before it."""
    bytes_so_far: int
    added_before: int
    """How many entries had ever been added to the queue before its first."""
    added: int
    """How many had been added up to its last."""


def _prefix(topic: int) -> bytes:
    return SEGMENTS + _TOPIC.pack(topic)


def _unpacked(key: bytes, value: bytes) -> Segment:
    first_ms, first_seq, *counts = _BODY.unpack_from(value)
    last = entry_ids.unpack(key, len(key) - entry_ids.BYTES)
    return Segment(value[_BODY.size :], (first_ms, first_seq), last, *counts)


def put(txn: Txn, topic: int, segment: Segment) -> None:
    name, first, last, *counts = segment
    txn.put(_prefix(topic) + entry_ids.pack(last), _BODY.pack(*first, *counts) + name)


def of_topic(txn: Txn, topic: int) -> Iterator[Segment]:
    """Yield the segments, oldest first. Change nothing meanwhile."""
    for key, value in databases.items(txn, _prefix(topic)):
        yield _unpacked(key, value)


def oldest(txn: Txn, topic: int) -> Segment | None:
    return next(of_topic(txn, topic), None)


def latest(txn: Txn, topic: int) -> Segment | None:
    prefix = _prefix(topic)
    found = databases.last_up_to(txn, prefix, prefix + entry_ids.pack(entry_ids.MAX))
    return None if found is None else _unpacked(*found)


def behind(txn: Txn, topic: int, entry_id: Id) -> Segment | None:
    """Return the segment that has the next entries after this id; None if they are under the queue's own key."""
    following = entry_ids.after(entry_id)
    if following is None:
        return None
    prefix = _prefix(topic)
    found = next(databases.items_from(txn, prefix, prefix + entry_ids.pack(following)), None)
    return None if found is None else _unpacked(*found)


def totals(txn: Txn, topic: int) -> tuple[int, int]:
    """Return how many entries, and bytes of them, all segments have."""
    first, last = oldest(txn, topic), latest(txn, topic)
    if first is None or last is None:
        return 0, 0
    entries = last.entries_so_far - first.entries_so_far + first.entries
    return entries, last.bytes_so_far - first.bytes_so_far + first.size_bytes


def remove(txn: Txn, topic: int, segment: Segment) -> None:
    """Take a segment out of the directory, and have its key removed."""
    prefix = _prefix(topic)
    key = prefix + entry_ids.pack(segment.last)
    if oldest(txn, topic) != segment:
        for at, value in list(databases.items_from(txn, prefix, key + b"\0")):
            later = _unpacked(at, value)
            put(
                txn,
                topic,
                later._replace(
                    entries_so_far=later.entries_so_far - segment.entries,
                    bytes_so_far=later.bytes_so_far - segment.size_bytes,
                ),
            )
    txn.delete(key)
    _forsake(txn, segment.name)


def forsake_all(txn: Txn, topic: int) -> None:
    """Empty the directory, and have the keys of all segments removed."""
    for segment in list(of_topic(txn, topic)):
        _forsake(txn, segment.name)
    databases.delete_all(txn, _prefix(topic))


def move(txn: Txn, topic: int, to: int) -> None:
    """Give the directory to another number."""
    databases.copy_all(txn, _prefix(topic), _prefix(to))
    databases.delete_all(txn, _prefix(topic))


# -- what is to be removed


def _forsake(txn: Txn, name: bytes) -> None:
    txn.put(_NEEDLESS + blake2b(name, digest_size=_DIGEST_BYTES).digest(), name)


def forsaken(txn: Txn, limit: int) -> list[bytes]:
    """Return the names of at most `limit` segments whose keys are to be removed."""
    return [name for _, name in islice(databases.items(txn, _NEEDLESS), limit)]


def forget(txn: Txn, name: bytes) -> None:
    """Forget a segment whose key has been removed."""
    txn.delete(_NEEDLESS + blake2b(name, digest_size=_DIGEST_BYTES).digest())
