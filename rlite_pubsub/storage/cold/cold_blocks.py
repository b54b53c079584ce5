"""The part of a topic's entries that is in the cold store: in which of its files, and which of these entries are gone
all the same.

    state       'O', topic u64, 0 u8                    sealed to (16 bytes), live entries u64, live bytes u64, and both
                                                        of the first block alone
    blocks      'O', topic u64, 1 u8, first id          a block, as `_BLOCK` draws it, its path, its row groups
    shared      'O', 0 u64, path                        topics that have this block u32, where they are more than one
    tombstones  'V', topic u64, id (16 bytes)           bytes of the entry u32
    dropped     'Q', due ms u64, path                   empty

Entries up to and including `sealed to` are in blocks, all others in chunks (chunks.py). A block is never changed: what
is deleted in it has a tombstone, and what is trimmed stands at or below the topic's last trimmed id. A block may hold
ids above `sealed to`: it was written, and the topic's chunks are being taken out of the hot log. Nobody reads those
from it.

The sealing process removes a dropped block's file when its grace is over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import COLD, DROPPED_BLOCKS, TOMBSTONES
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.journal.recording import delete_here
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_TOPIC = Struct(">Q")
_STATE = Struct(">16sQQQQ")
_BLOCK = Struct(">16sQQQQ32sIH")
"""Last id, entries, bytes of entries as sent, bytes of the file, sealed ms, sha256, row groups, length of the path."""
_GROUP = Struct(">16s16sIQ")
"""First id, last id, entries, bytes of entries as sent."""
_COUNT = Struct(">I")
_SIZE = Struct(">I")
_DUE = Struct(">Q")
STATES, _BLOCKS = b"\0", b"\1"


@dataclass(frozen=True, slots=True)
class GroupInfo:
    """A row group of a block: the unit of reading."""

    first: Id
    last: Id
    count: int
    wire_bytes: int
    """The size of its entries, as they are sent."""


@dataclass(frozen=True, slots=True)
class BlockInfo:
    """A block, as it was written."""

    path: str
    """In its place (cold/place.py)."""
    first: Id
    last: Id
    count: int
    wire_bytes: int
    file_bytes: int
    sha256: bytes
    sealed_ms: int
    groups: tuple[GroupInfo, ...]


class ColdState(NamedTuple):
    """The total of a topic's blocks."""

    sealed_to: Id = entry_ids.MIN
    live: int = 0
    """Entries up to `sealed_to`, without deleted ones."""
    live_bytes: int = 0
    first_live: int = 0
    """The same for the first block alone."""
    first_bytes: int = 0


# -- state


def state(txn: Txn, topic: int) -> ColdState:
    """Return the state of a topic's cold part; an empty one if nothing was ever sealed."""
    found = txn.get(COLD + _TOPIC.pack(topic) + STATES)
    if found is None:
        return ColdState()
    sealed_to, *counts = _STATE.unpack(found)
    return ColdState(entry_ids.unpack(sealed_to), *counts)


def put_state(txn: Txn, topic: int, changed: ColdState) -> None:
    txn.put(COLD + _TOPIC.pack(topic) + STATES, _STATE.pack(entry_ids.pack(changed.sealed_to), *changed[1:]))


# -- blocks


def prefix(topic: int) -> bytes:
    """Return the beginning of the keys of a topic's blocks."""
    return COLD + _TOPIC.pack(topic) + _BLOCKS


def put(txn: Txn, topic: int, block: BlockInfo) -> None:
    """Add a block to a topic."""
    path = block.path.encode()
    head = _BLOCK.pack(
        entry_ids.pack(block.last),
        block.count,
        block.wire_bytes,
        block.file_bytes,
        block.sealed_ms,
        block.sha256,
        len(block.groups),
        len(path),
    )
    groups = [
        _GROUP.pack(entry_ids.pack(group.first), entry_ids.pack(group.last), group.count, group.wire_bytes)
        for group in block.groups
    ]
    txn.put(prefix(topic) + entry_ids.pack(block.first), b"".join((head, path, *groups)))
    for due, _ in list(databases.items(txn, DROPPED_BLOCKS)):  # another block had this path and went; this one stays
        if due[1 + _DUE.size :] == path:
            txn.delete(due)


def _unpacked(key: bytes, value: bytes) -> BlockInfo:
    last, count, wire_bytes, file_bytes, sealed_ms, sha256, _, path_bytes = _BLOCK.unpack_from(value)
    at = _BLOCK.size + path_bytes
    groups = tuple(
        GroupInfo(entry_ids.unpack(one), entry_ids.unpack(other), entries, size)
        for one, other, entries, size in _GROUP.iter_unpack(value[at:])
    )
    path = value[_BLOCK.size : at].decode()
    first = entry_ids.unpack(key, len(key) - entry_ids.BYTES)
    return BlockInfo(
        path, first, entry_ids.unpack(last), count, wire_bytes, file_bytes, sha256, sealed_ms, groups
    )


def forward(txn: Txn, topic: int, start: Id = entry_ids.MIN) -> Iterator[BlockInfo]:
    """Yield the blocks that hold ids from `start` on, first to last. The store must not be changed meanwhile."""
    of_topic = prefix(topic)
    before = databases.last_up_to(txn, of_topic, of_topic + entry_ids.pack(start))
    for row in databases.items_from(txn, of_topic, of_topic if before is None else before[0]):
        block = _unpacked(*row)
        if block.last >= start:
            yield block


def backward(txn: Txn, topic: int, end: Id = entry_ids.MAX) -> Iterator[BlockInfo]:
    """Yield the blocks that hold ids up to `end`, last to first. The store must not be changed meanwhile."""
    of_topic = prefix(topic)
    found = databases.last_up_to(txn, of_topic, of_topic + entry_ids.pack(end))
    while found is not None:
        yield _unpacked(*found)
        before = entry_ids.before(entry_ids.unpack(found[0], len(of_topic)))
        found = None if before is None else databases.last_up_to(txn, of_topic, of_topic + entry_ids.pack(before))


def files(txn: Txn, without: Collection[int] = ()) -> Iterator[tuple[str, bytes, int]]:
    """Yield (path, sha256, bytes) of the file of each topic's blocks, except those of topics with the numbers in
    `without`: a file that several topics share comes as often."""
    kind_at = 1 + _TOPIC.size
    left_out = {bytes(_TOPIC.size), *map(_TOPIC.pack, without)}
    for key, value in databases.items(txn, COLD):
        if key[1:kind_at] not in left_out and key[kind_at : kind_at + 1] == _BLOCKS:
            _, _, _, file_bytes, _, sha256, _, path_bytes = _BLOCK.unpack_from(value)
            yield value[_BLOCK.size : _BLOCK.size + path_bytes].decode(), sha256, file_bytes


def first(txn: Txn, topic: int) -> BlockInfo | None:
    return next(forward(txn, topic), None)


def last(txn: Txn, topic: int) -> BlockInfo | None:
    return next(backward(txn, topic), None)


def remove(txn: Txn, topic: int, block: BlockInfo, due_ms: int) -> None:
    """Remove a block from a topic. If no other topic has it, its file is deleted when it is due."""
    end = entry_ids.pack(block.last)
    of_topic = TOMBSTONES + _TOPIC.pack(topic)
    cursor = txn.cursor()
    found = cursor.set_range(of_topic + entry_ids.pack(block.first))
    while found and cursor.key().startswith(of_topic) and cursor.key()[len(of_topic) :] <= end:
        found = delete_here(txn, cursor)
    txn.delete(prefix(topic) + entry_ids.pack(block.first))
    _drop_file(txn, block.path, due_ms)


def _drop_file(txn: Txn, path: str, due_ms: int) -> None:
    """Drop a topic's reference to a file."""
    shared = COLD + _TOPIC.pack(0) + path.encode()
    others = txn.get(shared)
    if others is None:
        txn.put(DROPPED_BLOCKS + _DUE.pack(due_ms) + path.encode(), b"")
        return
    count = _COUNT.unpack(others)[0] - 1
    if count > 1:
        txn.put(shared, _COUNT.pack(count))
    else:
        txn.delete(shared)


def copy(txn: Txn, topic: int, to: int) -> None:
    """Give another topic the same blocks, with the same tombstones."""
    for block in list(forward(txn, topic)):
        shared = COLD + _TOPIC.pack(0) + block.path.encode()
        count = txn.get(shared)
        txn.put(shared, _COUNT.pack(2 if count is None else _COUNT.unpack(count)[0] + 1))
    databases.copy_all(txn, COLD + _TOPIC.pack(topic), COLD + _TOPIC.pack(to))
    databases.copy_all(txn, TOMBSTONES + _TOPIC.pack(topic), TOMBSTONES + _TOPIC.pack(to))


def remove_all(txn: Txn, topic: int, due_ms: int, limit: int) -> int:
    """Remove at most this many blocks of a topic that is gone; return how many. Once none is left, its state is
    removed, too."""
    found = [block for block, _ in zip(forward(txn, topic), range(limit), strict=False)]
    for block in found:
        remove(txn, topic, block, due_ms)
    if len(found) < limit:
        txn.delete(COLD + _TOPIC.pack(topic) + STATES)
    return len(found)


# -- tombstones


def bury(txn: Txn, topic: int, packed_id: bytes, size_bytes: int) -> None:
    """Mark an entry of a block as deleted."""
    txn.put(TOMBSTONES + _TOPIC.pack(topic) + packed_id, _SIZE.pack(size_bytes))


def buried(txn: Txn, topic: int, start: Id, end: Id) -> Iterator[tuple[bytes, int]]:
    """Yield (packed id, bytes of the entry) of what is deleted from `start` to `end`, both included."""
    of_topic = TOMBSTONES + _TOPIC.pack(topic)
    past = entry_ids.pack(end)
    for key, value in databases.items_from(txn, of_topic, of_topic + entry_ids.pack(start)):
        packed = key[len(of_topic) :]
        if packed > past:
            return
        yield packed, _SIZE.unpack(value)[0]


# -- dropped files


def dropped(txn: Txn, now_ms: int, limit: int) -> Sequence[tuple[int, str]]:
    """Return (due ms, path) of files whose grace is over."""
    found: list[tuple[int, str]] = []
    for key, _ in databases.items(txn, DROPPED_BLOCKS):
        due_ms = _DUE.unpack_from(key, 1)[0]
        if due_ms > now_ms or len(found) >= limit:
            break
        found.append((due_ms, key[1 + _DUE.size :].decode()))
    return found


def forget_dropped(txn: Txn, due_ms: int, path: str) -> None:
    """Forget a file that is gone."""
    txn.delete(DROPPED_BLOCKS + _DUE.pack(due_ms) + path.encode())


# -- compaction


def swap(txn: Txn, topic: int, old_firsts: Sequence[Id], new: BlockInfo, due_ms: int) -> list[BlockInfo] | None:
    """Replace a run of blocks by one with the same entries; return those that it replaces, whose files are deleted when
    due.

    Returns None, having changed nothing, if these are not adjacent blocks of the topic, are being sealed, or do not
    have the new one's ids and counts. Tombstones stay: deleted entries are deleted in the new block, too."""
    if not old_firsts:
        return None
    found = [block for block, _ in zip(forward(txn, topic, old_firsts[0]), old_firsts, strict=False)]
    if [block.first for block in found] != list(old_firsts) or found[-1].last > state(txn, topic).sealed_to:
        return None
    counts = sum(block.count for block in found), sum(block.wire_bytes for block in found)
    if (found[0].first, found[-1].last, *counts) != (new.first, new.last, new.count, new.wire_bytes):
        return None
    if any(block.path == new.path for block in found):
        return None
    for block in found:
        txn.delete(prefix(topic) + entry_ids.pack(block.first))
        _drop_file(txn, block.path, due_ms)
    put(txn, topic, new)
    return found
