"""Entries staged for topics until one commit appends all of them, and which batches were committed.

    pieces   'A', application part, batch u64, partition u32, attempt u64, piece u32, 0 u32
                 made ms u64, rows u32, database u32, has ids u8, first id, last id (16 bytes each; 0 without ids),
                 topic
             'A', …, piece u32, n u32 (1, 2, …)
                 count u32 | count ids, 16 bytes each, if it has ids | count ends u32 | bodies   (count and ends are
                 little-endian)
    markers  'B', application part
                 batch u64, committed ms u64, forgotten from ms u64 (0: never), rest of the application's name

A body is the array of an entry's fields and values, as it is sent. An application is a writer that commits batch after
batch; its marker is written in the transaction that appends what was staged, so both are done, or neither is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, count, islice
from struct import Struct, unpack_from
from typing import NamedTuple

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.databases import MARKERS, STAGES
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids

KEPT_MS = 24 * 3600 * 1000
"""What nobody has committed for this long is removed."""
RECORD_BYTES = 4096 - 16
"""What one page of LMDB's holds of one value."""
ROWS_AT_ONCE = 500
_BATCH = Struct(">Q")
_WRITER = Struct(">IQ")
_PIECE = Struct(">I")
_NUMBER = Struct(">I")
_HEAD = Struct(">QII?16s16s")
_MARKER = Struct(">QQQ")
_COUNT = Struct("<I")
_PAST_PIECE = b"\xff" * 4


class Writer(NamedTuple):
    """A writer that stages: one attempt at one part of a batch."""

    application: bytes
    batch: int
    partition: int
    attempt: int

    @property
    def key(self) -> bytes:
        """The beginning of the keys of its pieces."""
        return _of_batch(self.application, self.batch) + _WRITER.pack(self.partition, self.attempt)


class StagedRows(NamedTuple):
    """Rows for one topic, in order."""

    made_ms: int
    rows: int
    database: int
    has_ids: bool
    first: bytes
    last: bytes
    """Packed ids, if it has ids."""
    topic: bytes


class Marker(NamedTuple):
    """How far an application has come."""

    batch: int
    """The last batch that was committed."""
    committed_ms: int
    forgotten_ms: int
    """From when on nobody needs to know; 0: never."""


def _of_batch(application: bytes, batch: int) -> bytes:
    return STAGES + key_parts.key_part(application) + _BATCH.pack(batch)


# -- pieces


def put(
    txn: Txn, writer: Writer, number: int, piece: StagedRows, bodies: Sequence[bytes], ids: Sequence[bytes]
) -> None:
    """Stage a piece, replacing what was staged under this number. `ids`: one for each body, packed, or none."""
    of_piece = writer.key + _PIECE.pack(number)
    databases.delete_all(txn, of_piece)
    head = _HEAD.pack(*piece[:4], piece.first or bytes(entry_ids.BYTES), piece.last or bytes(entry_ids.BYTES))
    txn.put(of_piece + _NUMBER.pack(0), head + piece.topic)
    for place, (start, stop) in enumerate(_cut(list(map(len, bodies)), bool(ids)), 1):
        some = bodies[start:stop]
        ends = Struct(f"<{len(some)}I").pack(*accumulate(map(len, some)))
        txn.put(of_piece + _NUMBER.pack(place), b"".join((_COUNT.pack(len(some)), *ids[start:stop], ends, *some)))


def _cut(sizes: list[int], has_ids: bool) -> Iterator[tuple[int, int]]:
    row = 4 + has_ids * entry_ids.BYTES
    start, taken = 0, _COUNT.size
    for place, size in enumerate(sizes):
        if place > start and taken + row + size > RECORD_BYTES:
            yield start, place
            start, taken = place, _COUNT.size
        taken += row + size
    if start < len(sizes):
        yield start, len(sizes)


def pieces(txn: Txn, writer: Writer) -> Iterator[tuple[int, StagedRows]]:
    """Yield (number, piece) of everything that it has staged, in order. Change nothing meanwhile."""
    of_writer = writer.key
    cursor = txn.cursor()
    found = cursor.set_range(of_writer)
    while found:
        key, value = cursor.item()
        if not key.startswith(of_writer):
            return
        yield _PIECE.unpack_from(key, len(of_writer))[0], _unpacked(value)
        found = cursor.set_range(key[: len(of_writer) + _PIECE.size] + _PAST_PIECE)


def _unpacked(value: bytes) -> StagedRows:
    made_ms, rows, database, has_ids, first, last = _HEAD.unpack_from(value)
    return StagedRows(made_ms, rows, database, has_ids, first, last, value[_HEAD.size :])


def rows(txn: Txn, writer: Writer, number: int, *, has_ids: bool) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield the ids, packed, if there are any, and the bodies of a piece, some hundreds at a time. The store may be
    changed meanwhile."""
    of_piece = writer.key + _PIECE.pack(number)
    ids: list[bytes] = []
    bodies: list[bytes] = []
    width = entry_ids.BYTES
    for place in count(1):
        value = txn.get(of_piece + _NUMBER.pack(place))
        if value is None:
            break
        rows = _COUNT.unpack_from(value)[0]
        at = _COUNT.size
        if has_ids:
            ids += [value[start : start + width] for start in range(at, at + width * rows, width)]
            at += width * rows
        ends = unpack_from(f"<{rows}I", value, at)
        base = start = at + 4 * rows
        bodies += [value[start : (start := base + end)] for end in ends]
        if len(bodies) >= ROWS_AT_ONCE:
            yield ids, bodies
            ids, bodies = [], []
    if bodies:
        yield ids, bodies


def drop(txn: Txn, application: bytes, batch: int, limit: int) -> int:
    """Remove at most `limit` records that it has staged up to and including this batch; return how many there were."""
    of_application = STAGES + key_parts.key_part(application)
    past = of_application + _BATCH.pack(batch) + b"\xff" * 20
    found = []
    for key, _ in islice(databases.items(txn, of_application), limit):
        if key > past:
            break
        found.append(key)
    for key in found:
        txn.delete(key)
    return len(found)


def exist(txn: Txn) -> bool:
    """Return whether anything is staged, or any marker exists."""
    return next(databases.items(txn, STAGES), None) is not None or next(databases.items(txn, MARKERS), None) is not None


def sweep(txn: Txn, before_ms: int, now_ms: int, limit: int) -> int:
    """Remove at most `limit` records of pieces that nobody will commit any more, because of their age or because their
    batch is done, and of markers to be forgotten; return how many."""
    for key in [key for key, value in databases.items(txn, MARKERS) if 0 < _MARKER.unpack_from(value)[2] <= now_ms]:
        txn.delete(key)
    over: list[bytes] = []
    cursor = txn.cursor()
    found = cursor.set_range(STAGES)
    while found and (key := cursor.key()).startswith(STAGES):
        marker_key = MARKERS + key[1 : key_parts.split(key, 1, b"")[1]]
        batch = _BATCH.unpack_from(key, len(marker_key))[0]
        reached = txn.get(marker_key)
        is_done = reached is not None and _MARKER.unpack_from(reached)[0] >= batch
        if is_done or _unpacked(cursor.value()).made_ms < before_ms:
            over.append(key[: -_NUMBER.size])
        found = cursor.set_range(key[: -_NUMBER.size] + _PAST_PIECE)
    removed = 0
    for of_piece in over:
        keys = [key for key, _ in islice(databases.items(txn, of_piece), limit - removed)]
        for key in reversed(keys):  # its head is removed last
            txn.delete(key)
            removed += 1
    return removed


# -- markers


def marker(txn: Txn, application: bytes) -> Marker | None:
    """Return the marker; None if it has never committed anything, or that is forgotten."""
    found = txn.get(MARKERS + key_parts.key_part(application))
    return None if found is None else Marker(*_MARKER.unpack_from(found))


def mark(txn: Txn, application: bytes, reached: Marker) -> None:
    txn.put(MARKERS + key_parts.key_part(application), _MARKER.pack(*reached) + key_parts.value_part(application))
