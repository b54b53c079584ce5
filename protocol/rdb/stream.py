"""Dumped streams.

    count of nodes; each: its first id (a string of 16 bytes), a listpack
    length, last id | 19, 21: first id, highest deleted id, entries ever added
    count of groups; each: name, last id | 19, 21: entries read
        count of what is pending; each: id (16 bytes), delivered ms i64, deliveries
        count of consumers; each: name, seen ms i64, 21: active ms i64, count of what is pending with it, ids (16 bytes
            each)

    a node: live, deleted, count of fields, fields, 0, entries
    an entry: flags (1: deleted, 2: its fields are the node's), ms and seq from the node's id on,
              values | count of fields, field and value by turns; and how many elements that makes

Numbers that are no length are lengths here, too. Kind 15 is of Redis before version 7, and knows less; kind 21 is of
Redis 7.2, and says when a consumer last got something, which is not kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import NamedTuple, TypeAlias

from rlite_pubsub.protocol.rdb import envelope, listpack
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed

OLD_STREAM, STREAM, LATER_STREAM = 15, 19, 21
STREAMS = frozenset((OLD_STREAM, STREAM, LATER_STREAM))
_DELETED, _SAME_FIELDS = 1, 2
_HEAD_WORDS = 3  # of an entry: flags, ms, seq
_ID = Struct(">QQ")
_MASK = (1 << 64) - 1
_MOST_ADDED = (1 << 64) - (1 << 62)
"""Of entries that were ever added: a count that goes on for long."""
_MOST = (1 << 63) - 1
"""Of what goes on being counted."""
_UNKNOWN = _MASK
_ACTIVE_BYTES = 8
_LARGEST_NODE_BYTES = 1 << 30
_LIVE_BYTES = 200
"""About what an entry takes beside its bytes."""

Id: TypeAlias = tuple[int, int]
Entry: TypeAlias = tuple[Id, list[bytes]]
"""An id, and fields and values by turns."""


class ConsumerImage(NamedTuple):
    """A consumer, and the ids that are pending with it."""

    name: bytes
    seen_ms: int
    pending: list[Id]


class GroupImage(NamedTuple):
    """A group, and by id when and how often what is pending was delivered."""

    name: bytes
    last_id: Id
    entries_read: int | None
    pending: dict[Id, tuple[int, int]]
    consumers: list[ConsumerImage]


class StreamImage(NamedTuple):
    """A stream."""

    entries: Iterable[Entry]
    length: int
    last_id: Id
    first_id: Id
    max_deleted_id: Id
    entries_added: int
    groups: list[GroupImage]
    is_counted: bool = True  # False: what its groups have read, and what was added and deleted, is not known


# -- writing


def pack_stream(stream: StreamImage, limits: tuple[int, int]) -> bytes:
    """The type of a stream and the stream; at most so many (entries, bytes) go into a node."""
    nodes = list(_packed_nodes(stream.entries, *limits))
    return b"".join(_pieces(stream, len(nodes), nodes))


def stream_pieces(look: Callable[[], StreamImage], limits: tuple[int, int]) -> Iterator[bytes]:
    """Yield the pieces of `pack_stream`, a node at a time. `look` is called twice: the number of nodes precedes
    them."""
    count = sum(1 for _ in _packed_nodes(look().entries, *limits))
    stream = look()
    return _pieces(stream, count, _packed_nodes(stream.entries, *limits))


def _pieces(stream: StreamImage, count: int, nodes: Iterable[bytes]) -> Iterator[bytes]:
    yield bytes((STREAM,)) + envelope.length(count)
    yield from nodes
    numbers = (
        stream.length,
        *stream.last_id,
        *stream.first_id,
        *stream.max_deleted_id,
        stream.entries_added,
        len(stream.groups),
    )
    yield b"".join(map(envelope.length, numbers))
    for group in stream.groups:
        yield from _packed_group(group)


def _packed_nodes(entries: Iterable[Entry], most: int, most_bytes: int) -> Iterator[bytes]:
    master: Id = (0, 0)
    names: list[bytes] = []
    head: list[bytes] = []
    body: list[bytes] = []
    count = size = 0
    most_bytes = min(most_bytes or _LARGEST_NODE_BYTES, _LARGEST_NODE_BYTES)
    for entry_id, words in entries:
        if count and (size >= most_bytes or (most and count >= most)):
            yield _packed_node(master, count, head, body)
            count = size = 0
        if not count:
            master, names, body = entry_id, words[::2], []
            packed_names = list(map(listpack.element, names))
            head = [listpack.integer(len(names)), *packed_names, listpack.integer(0)]
            size = sum(map(len, head))
        packed = _packed_entry(master, names, entry_id, words)
        body += packed
        size += sum(map(len, packed))
        count += 1
    if count:
        yield _packed_node(master, count, head, body)


def _packed_node(master: Id, count: int, head: list[bytes], body: list[bytes]) -> bytes:
    packed = listpack.assemble([listpack.integer(count), listpack.integer(0), *head, *body])
    return envelope.length(_ID.size) + _ID.pack(*master) + envelope.string(packed)


def _packed_entry(master: Id, names: list[bytes], entry_id: Id, words: list[bytes]) -> list[bytes]:
    integer = listpack.integer
    is_same = words[::2] == names
    packed = [integer(_SAME_FIELDS if is_same else 0), *map(integer, map(_difference, entry_id, master))]
    if is_same:
        packed += map(listpack.element, words[1::2])
    else:
        packed += [integer(len(words) // 2), *map(listpack.element, words)]
    packed.append(integer(len(packed)))
    return packed


def _difference(one: int, other: int) -> int:
    """Return a difference of 64 bits as a signed number."""
    difference = (one - other) & _MASK
    return difference - (1 << 64) if difference >> 63 else difference


def _packed_group(group: GroupImage) -> Iterator[bytes]:
    yield envelope.string(group.name)
    yield from map(envelope.length, group.last_id)
    yield envelope.length(_UNKNOWN if group.entries_read is None else group.entries_read)
    yield envelope.length(len(group.pending))
    for entry_id, (delivered_ms, deliveries) in group.pending.items():
        yield _ID.pack(*entry_id) + envelope.milliseconds(delivered_ms) + envelope.length(deliveries)
    yield envelope.length(len(group.consumers))
    for consumer in group.consumers:
        yield envelope.string(consumer.name) + envelope.milliseconds(consumer.seen_ms)
        yield envelope.length(len(consumer.pending))
        yield from [_ID.pack(*entry_id) for entry_id in consumer.pending]


# -- reading


def read_stream(kind: int, reader: PayloadReader) -> StreamImage:
    """A stream whose ids grow and whose counts agree. Raises Malformed."""
    entries = _read_entries(reader)
    length, last_id = reader.length(), reader.pair()
    is_counted = kind != OLD_STREAM
    first_id = entries[0][0] if entries else (0, 0)
    max_deleted_id, entries_added = (0, 0), length
    if is_counted:
        reader.pair()  # the first id, which the entries tell as well
        max_deleted_id, entries_added = reader.pair(), reader.length()
    if length != len(entries) or not length <= entries_added <= _MOST_ADDED:
        raise Malformed("a stream of another length")
    if entries and entries[-1][0] > last_id:
        raise Malformed("a stream with an id above its last one")
    groups = _read_groups(reader, kind)
    return StreamImage(entries, length, last_id, first_id, max_deleted_id, entries_added, groups, is_counted)


def _read_entries(reader: PayloadReader) -> list[Entry]:
    entries: list[Entry] = []
    above: Id = (0, 0)
    for _ in range(reader.length()):
        master = reader.string()
        if len(master) != _ID.size:
            raise Malformed("a node of a stream without an id")
        words = list(reader.each(listpack.elements(reader.string())))
        for entry_id, pairs in _node_entries(reader, _ID.unpack(master), words):
            if entry_id <= above:
                raise Malformed("a stream whose ids do not grow")
            above = entry_id
            entries.append((entry_id, pairs))
    return entries


def _node_entries(reader: PayloadReader, master: tuple[int, ...], words: list[bytes]) -> Iterator[Entry]:
    live, deleted, name_count = (_number(words, place) for place in range(3))
    at = 4 + name_count
    if min(live, deleted, name_count) < 0 or _number(words, at - 1) != 0:
        raise Malformed("a node of a stream without a head")
    names = words[3 : at - 1]
    name_bytes = sum(map(len, names))
    for _ in range(live + deleted):
        flags, ms, seq = (_number(words, at + place) for place in range(_HEAD_WORDS))
        start = at
        at += _HEAD_WORDS
        if flags & _SAME_FIELDS:
            pairs = [b""] * (2 * name_count)
            pairs[::2], values = names, words[at : at + name_count]
            at += name_count
            _check(len(values) == name_count)
            pairs[1::2] = values
            reader.spend(name_bytes + 16 * name_count)
        else:
            count = _number(words, at)
            pairs = words[at + 1 : at + 1 + 2 * count] if count > 0 else []
            at += 1 + 2 * count
        _check(bool(pairs) and _number(words, at) == at - start)
        at += 1
        if flags & _DELETED:
            deleted -= 1
        else:
            live -= 1
            reader.spend(_LIVE_BYTES)
            yield ((master[0] + ms) & _MASK, (master[1] + seq) & _MASK), pairs
    _check(at == len(words) and not live and not deleted)


def _check(is_right: bool) -> None:
    if not is_right:
        raise Malformed("an entry of a stream that does not add up")


def _number(words: list[bytes], place: int) -> int:
    """The element at this place, which is an integer."""
    word = words[place] if 0 <= place < len(words) else b""
    if not word or len(word) > 20 or not word.removeprefix(b"-").isdigit():
        raise Malformed("a node of a stream with something else for a number")
    return int(word)


def _read_groups(reader: PayloadReader, kind: int) -> list[GroupImage]:
    groups: dict[bytes, GroupImage] = {}
    for _ in range(reader.length()):
        group = _read_group(reader, kind)
        if group.name in groups:
            raise Malformed("two groups of one name")
        groups[group.name] = group
    return list(groups.values())


def _read_group(reader: PayloadReader, kind: int) -> GroupImage:
    name, last_id = reader.string(), reader.pair()
    entries_read = reader.length() if kind != OLD_STREAM else _UNKNOWN
    if entries_read > _MOST and entries_read != _UNKNOWN:
        raise Malformed("a group that has read too much")
    pending: dict[Id, tuple[int, int]] = {}
    for _ in range(reader.length()):
        entry_id = _read_id(reader)
        fate = reader.milliseconds(), reader.length()
        if entry_id in pending or fate[1] > _MOST:
            raise Malformed("an entry that is pending twice, or too often")
        reader.spend(_LIVE_BYTES)
        pending[entry_id] = fate
    consumers: dict[bytes, ConsumerImage] = {}
    free = set(pending)
    for _ in range(reader.length()):
        consumer = _read_consumer(reader, free, kind)
        if consumer.name in consumers:
            raise Malformed("two consumers of one name")
        consumers[consumer.name] = consumer
    if free:
        raise Malformed("an entry that is pending with nobody")
    known = None if entries_read == _UNKNOWN else entries_read
    return GroupImage(name, last_id, known, pending, list(consumers.values()))


def _read_consumer(reader: PayloadReader, free: set[Id], kind: int) -> ConsumerImage:
    name, seen_ms = reader.string(), reader.milliseconds()
    if kind == LATER_STREAM:
        reader.take(_ACTIVE_BYTES)
    reader.spend(_LIVE_BYTES)
    pending = []
    for _ in range(reader.length()):
        entry_id = _read_id(reader)
        if entry_id not in free:
            raise Malformed("an entry that is pending with two consumers, or with none")
        free.remove(entry_id)
        pending.append(entry_id)
    return ConsumerImage(name, seen_ms, pending)


def _read_id(reader: PayloadReader) -> Id:
    ms, seq = _ID.unpack(reader.take(_ID.size))
    return ms, seq
