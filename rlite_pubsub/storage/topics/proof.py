"""Checks that the records of topics fit each other: entries and their counts, closed segments, deferred entries and
deadlines, settings and when they are due, trim marks, types of events, publications, staged pieces.

Every transaction leaves them consistent. A fault is damage, or a bug of this program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import (
    chunks,
    deadlines,
    deferred,
    entry_ids,
    publications,
    segments,
    topic_settings,
    trim_marks,
    type_index,
)
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import Id

_NUMBER = Struct(">Q")
_ORDERED = Struct(">QQI")
_DUE = Struct(">QQ")
_NUMBER_KEY_BYTES = 1 + _NUMBER.size
_ENTRY_HEAD_BYTES = 60
"""An entry begins with its array, the length of its id, and the id."""


class TopicHead(NamedTuple):
    """The fields of a topic's record that are checked."""

    place: bytes
    name: bytes
    length: int
    size_bytes: int
    last_id: Id
    groups: int
    last_group: int
    trimmed: int
    trimmed_id: Id
    has_cold: bool
    has_segments: bool


def faults(txn: Txn, topics: dict[int, TopicHead]) -> Iterator[str]:
    """Yield the faults. `topics`: all existing topics, by number."""
    for number, topic in topics.items():
        for look in _LOOKS:
            yield from (f"topic {topic.name!r} {fault}" for fault in look(txn, number, topic))
    yield from _of_orders(txn, topics)
    yield from _of_staged(txn)


def _of_entries(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    cold = cold_blocks.state(txn, number)
    length, size_bytes, before = cold.live, cold.live_bytes, entry_ids.pack(cold.sealed_to) if topic.has_cold else b""
    chunk_before = b""  # what is sealed, or trimmed, may end within a chunk, after its key
    for key, value in databases.items(txn, chunks.prefix(number)):
        chunk = Chunk(key, value)
        ids = [chunk.id(at) for at in range(chunk.count)]
        if not ids or list(chunk.ends) != sorted(chunk.ends) or chunk.ends[-1] != len(chunk.blob):
            yield f"has a chunk that says nothing, or too much, at {key[-entry_ids.BYTES :].hex()}"
            continue
        if not before < ids[0] or ids != sorted(set(ids)) or not chunk_before <= key[-entry_ids.BYTES :] <= ids[0]:
            yield f"has entries out of order at {entry_ids.unpack(ids[0])}"
        for id, entry in zip(ids, chunk.entries(), strict=True):
            if b"\r\n%b\r\n" % entry_ids.text(entry_ids.unpack(id)) not in entry[:_ENTRY_HEAD_BYTES]:
                yield f"has an entry under the id of another one: {entry_ids.unpack(id)}"
        length += len(ids)
        size_bytes += len(chunk.blob)
        before = chunk_before = ids[-1]
    if (length, size_bytes) != (topic.length, topic.size_bytes):
        yield f"says that it has {topic.length} entries of {topic.size_bytes} bytes, and has {length}, {size_bytes}"
    if before and entry_ids.unpack(before) > topic.last_id:
        yield f"has entry {entry_ids.unpack(before)}, and says that {topic.last_id} is its last id"


def _of_segments(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    found = list(segments.of_topic(txn, number))
    if bool(found) != topic.has_segments:
        yield f"has {len(found)} closed segments, and says otherwise"
    for one, other in pairwise(found):
        if not one.last < other.first or one.added > other.added_before:
            yield f"has segments {one.name!r} and {other.name!r} out of order"
        if one.entries_so_far + other.entries > other.entries_so_far:
            yield f"counts fewer entries up to segment {other.name!r} than it has"
    if found and found[-1].last > topic.last_id:
        yield f"has a segment up to {found[-1].last}, and says that {topic.last_id} is its last id"
    first = next(databases.items(txn, chunks.prefix(number)), None)
    if found and first is not None and Chunk(*first).first <= entry_ids.pack(found[-1].last):
        yield f"has entries under its own key that belong to segment {found[-1].name!r}"


def _of_deadlines(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    row = deadlines.topic_row(txn, number)
    waiting = sum(1 for _ in deferred.walk(txn, number))
    if waiting != (row.deferred if row is not None else 0):
        yield f"counts {row.deferred if row else 0} deferred entries, and has {waiting}"
    if row is not None and row.place != topic.place:
        yield "stands elsewhere than its deadlines say"
    of_topic = databases.DEADLINES + _NUMBER.pack(number)
    for key, value in databases.items(txn, of_topic):
        group = int.from_bytes(key[len(of_topic) :], "big")
        (due_ms,) = _NUMBER.unpack_from(value)
        order = databases.DEADLINES + bytes(8) + _ORDERED.pack(due_ms, number, group)
        if due_ms != deadlines.NEVER and txn.get(order) is None:
            yield f"has a deadline of group {group} that is not in their order"


def _of_settings(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    settings = topic_settings.get(txn, number)
    if settings is None:
        return
    if settings.place != topic.place:
        yield "stands elsewhere than its settings say"
    due = databases.TOPIC_SETTINGS + bytes(8) + b"d" + _DUE.pack(settings.due_ms, number)
    if settings.due_ms != topic_settings.NEVER and txn.get(due) is None:
        yield "is due to be trimmed, and is not in that order"


def _of_orders(txn: Txn, topics: dict[int, TopicHead]) -> Iterator[str]:
    """Check the orders. Rows of a topic that is gone are removed when their time comes."""
    order = databases.DEADLINES + bytes(8)
    for key, _ in databases.items(txn, order):
        due_ms, number, group = _ORDERED.unpack_from(key, len(order))
        row = deadlines.group_row(txn, number, group) if group else deadlines.topic_row(txn, number)
        if number in topics and row is not None and row.due_ms != due_ms:
            yield f"topic {topics[number].name!r} has another deadline than the order says, of group {group}"
        elif number in topics and row is None and not group:
            yield f"topic {topics[number].name!r} has a deadline in the order, and no row of its own"
    order = databases.TOPIC_SETTINGS + bytes(8) + b"d"
    for key, _ in databases.items(txn, order):
        due_ms, number = _DUE.unpack_from(key, len(order))
        settings = topic_settings.get(txn, number)
        if number in topics and (settings is None or settings.due_ms != due_ms):
            yield f"topic {topics[number].name!r} is due to be trimmed by the order, and not by its settings"


def _of_trim_marks(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    prefix = databases.TRIM_MARKS + _NUMBER.pack(number)
    before = 0
    for key, value in databases.items(txn, prefix):
        (count,) = _NUMBER.unpack(value)
        if not before < count <= topic.trimmed or entry_ids.unpack(key[len(prefix) :]) > topic.trimmed_id:
            yield f"has been trimmed {topic.trimmed} times, and is marked with {count} behind {before}"
        before = count
    if topic.trimmed >= trim_marks.EVERY and not before:
        yield f"has been trimmed {topic.trimmed} times, and has no mark of it"


def _of_types(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    prefix = databases.EVENT_TYPES + _NUMBER.pack(number)
    says: dict[bytes, int] = {}
    has: Counter[bytes] = Counter()
    highest = b""
    indexed = entry_ids.pack(type_index.indexed(txn, number))
    for key, value in databases.items(txn, prefix):
        part, digest = key[len(prefix)], key[len(prefix) + 1 :][: type_index.DIGEST_BYTES]
        if part == 1:
            says[digest] = _NUMBER.unpack_from(value)[0]
            if type_index.digest(value[_NUMBER.size :]) != digest:
                yield f"has type {value[_NUMBER.size :]!r} under the digest of another one"
        elif part == 2:
            has[digest] += len(value) // entry_ids.BYTES
            highest = max(highest, value[-entry_ids.BYTES :])
    if says != dict(has):
        yield f"has types of events with {sum(says.values())} entries, and {sum(has.values())} in their rows"
    if highest > indexed:
        yield f"has types of events up to {entry_ids.unpack(highest)}, and knows of {entry_ids.unpack(indexed)}"


def _of_publications(txn: Txn, number: int, topic: TopicHead) -> Iterator[str]:
    prefix = databases.PUBLICATIONS + _NUMBER.pack(number)
    state = publications.state(txn, number)
    producers: dict[bytes, int] = {}
    known: set[tuple[bytes, bytes, bytes]] = set()
    by_age: set[tuple[bytes, bytes]] = set()
    in_turn: set[tuple[bytes, bytes, bytes]] = set()
    width = publications.DIGEST_BYTES
    for key, value in databases.items(txn, prefix):
        part, rest = key[len(prefix)], key[len(prefix) + 1 :]
        if part == 1:
            producers[rest] = int.from_bytes(value, "big")
        elif part == 2:
            known.add((rest[:width], rest[width:], value[: _NUMBER.size]))
        elif part == 3:
            by_age.add((value[_NUMBER.size :], rest))
        elif part == 4:
            in_turn.add((rest[:width], value, rest[width:]))
    counted = Counter(producer for producer, _, _ in known)
    says = (state.producers, state.known) if state is not None else (0, 0)
    if known != in_turn or {(producer, serial) for producer, _, serial in known} != by_age:
        yield "has publications that are not found by each of their orders"
    if producers != dict(counted) or says != (len(producers), len(known)):
        yield f"says that it has {says[1]} publications of {says[0]} producers, and has {len(known)}, {len(counted)}"


def _of_staged(txn: Txn) -> Iterator[str]:
    """Check that each piece has its head, and as many rows as that says."""
    piece, says, has = b"", 0, 0
    for key, value in databases.items(txn, databases.STAGES):
        number = int.from_bytes(key[-4:], "big")
        if key[:-4] != piece:
            if says != has:
                yield f"staged piece {piece.hex()} says that it has {says} rows, and has {has}"
            piece, says, has = key[:-4], 0, 0
        if number == 0:
            says = int.from_bytes(value[8:12], "big")
        else:
            has += int.from_bytes(value[:4], "little")
    if says != has:
        yield f"staged piece {piece.hex()} says that it has {says} rows, and has {has}"


_LOOKS = (_of_entries, _of_segments, _of_deadlines, _of_settings, _of_trim_marks, _of_types, _of_publications)
