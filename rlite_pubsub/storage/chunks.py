"""The entries of topics: chunk after chunk, each a page of LMDB's.

    key    't', topic u64, an id (16 bytes) that is at most the chunk's first and above the last of the chunk before
    value  count u32 | count ids, 16 bytes each | count ends u32, of the entries in what follows | entries
           (count and ends are little-endian)

An entry is stored as the bytes that XRANGE sends, so reading is copying: a whole chunk at once where it lies within the
range. Ids stand apart from the entries, so that they are found by bisection and taken (for pending runs) by a slice.
A chunk fills one page, which is as full as pages get and never needs pages side by side; an entry that is larger has a
chunk to itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from struct import Struct, unpack_from

from rlite_pubsub.storage import entry_ids, keys
from rlite_pubsub.storage.entry_ids import Id
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import ENTRIES

CAPACITY = 4096 - 16
"""What one page of LMDB's holds of one value."""
_TOPIC = Struct(">Q")
_COUNT = Struct("<I")
_HEAD_BYTES = _COUNT.size
_COPIED_AT_ONCE = 256
_ROW_BYTES = entry_ids.BYTES + 4


class Chunk:
    """One chunk, out of the store."""

    __slots__ = ("count", "key", "value")

    def __init__(self, key: bytes, value: bytes) -> None:
        self.key = key
        self.value = value
        self.count: int = _COUNT.unpack_from(value)[0]

    def __len__(self) -> int:
        """How many bytes it takes."""
        return len(self.value)

    @property
    def ids(self) -> bytes:
        """All of them, packed, one behind the other."""
        return self.value[_HEAD_BYTES : _HEAD_BYTES + entry_ids.BYTES * self.count]

    @property
    def first(self) -> bytes:
        """The first id, packed."""
        return self.value[_HEAD_BYTES : _HEAD_BYTES + entry_ids.BYTES]

    @property
    def last(self) -> bytes:
        """The last id, packed."""
        end = _HEAD_BYTES + entry_ids.BYTES * self.count
        return self.value[end - entry_ids.BYTES : end]

    def id(self, place: int) -> bytes:
        """One id, packed."""
        at = _HEAD_BYTES + entry_ids.BYTES * place
        return self.value[at : at + entry_ids.BYTES]

    @property
    def ends(self) -> tuple[int, ...]:
        """Where each entry ends in `blob`."""
        return unpack_from(f"<{self.count}I", self.value, _HEAD_BYTES + entry_ids.BYTES * self.count)

    @property
    def blob(self) -> bytes:
        """All entries."""
        return self.value[_HEAD_BYTES + _ROW_BYTES * self.count :]

    def slice(self, start: int, stop: int) -> bytes:
        """The entries from `start` up to `stop`."""
        base = _HEAD_BYTES + _ROW_BYTES * self.count
        if start == 0 and stop == self.count:
            return self.value[base:]
        ends = self.ends
        return self.value[base + (ends[start - 1] if start else 0) : base + (ends[stop - 1] if stop else 0)]

    def entries(self) -> list[bytes]:
        """Each entry by itself."""
        blob, start, found = self.blob, 0, []
        for end in self.ends:
            found.append(blob[start:end])
            start = end
        return found

    def place_of(self, packed: bytes) -> int:
        """How many ids of this chunk are smaller."""
        return bisect_left(_Ids(self), packed)

    def place_behind(self, packed: bytes) -> int:
        """How many ids of this chunk are smaller or equal."""
        return bisect_right(_Ids(self), packed)


class _Ids(Sequence[bytes]):
    """A chunk's ids, for bisect."""

    def __init__(self, chunk: Chunk) -> None:
        self._id = chunk.id
        self._count = chunk.count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: int) -> bytes:  # type: ignore[override]
        return self._id(place)


@dataclass(frozen=True, slots=True)
class Part:
    """What a range has of one chunk."""

    chunk: Chunk
    start: int
    stop: int

    @property
    def count(self) -> int:
        return self.stop - self.start

    @property
    def wire(self) -> bytes:
        """Its entries, as they are sent."""
        return self.chunk.slice(self.start, self.stop)

    @property
    def ids(self) -> bytes:
        """Its ids, packed."""
        return self.chunk.ids[entry_ids.BYTES * self.start : entry_ids.BYTES * self.stop]


def prefix(topic: int) -> bytes:
    """What the keys of a topic's chunks begin with."""
    return ENTRIES + _TOPIC.pack(topic)


def pack(ids: Sequence[bytes], entries: Sequence[bytes]) -> bytes:
    """A chunk's value."""
    ends, end = [], 0
    for entry in entries:
        end += len(entry)
        ends.append(end)
    return b"".join((_COUNT.pack(len(ids)), *ids, Struct(f"<{len(ends)}I").pack(*ends), *entries))


def cut(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Which entries of so many bytes share a page: (from, up to)."""
    start, room = 0, CAPACITY - _HEAD_BYTES
    for place, size in enumerate(sizes):
        room -= size + _ROW_BYTES
        if room < 0 and place > start:
            yield start, place
            start, room = place, CAPACITY - _HEAD_BYTES - size - _ROW_BYTES
    if start < len(sizes):
        yield start, len(sizes)


def last(txn: Txn, topic: int) -> Chunk | None:
    """The topic's last chunk."""
    return next(backward(txn, topic, entry_ids.MAX), None)


def forward(txn: Txn, topic: int, start: Id) -> Iterator[Chunk]:
    """The chunks that may hold ids from `start` on, first to last. The store must not be changed meanwhile."""
    of_topic = prefix(topic)
    cursor = txn.cursor()
    wanted = of_topic + entry_ids.pack(start)
    found = cursor.set_range(wanted)
    if not found or cursor.key() != wanted:  # the one before may hold it, if it is this topic's
        found = (cursor.prev() if found else cursor.last()) and (
            cursor.key().startswith(of_topic) or cursor.next()
        )
    while found:
        key, value = cursor.item()
        if not key.startswith(of_topic):
            return
        yield Chunk(key, value)
        found = cursor.next()


def backward(txn: Txn, topic: int, end: Id) -> Iterator[Chunk]:
    """The chunks that may hold ids up to `end`, last to first. The store must not be changed meanwhile."""
    of_topic = prefix(topic)
    cursor = txn.cursor()
    wanted = of_topic + entry_ids.pack(end)
    found = cursor.set_range(wanted)
    if not found:
        found = cursor.last()
    elif cursor.key() != wanted:
        found = cursor.prev()
    while found:
        key, value = cursor.item()
        if not key.startswith(of_topic):
            return
        yield Chunk(key, value)
        found = cursor.prev()


def between(txn: Txn, topic: int, start: Id, end: Id, limit: int | None = None) -> Iterator[Part]:
    """At most `limit` entries with ids from `start` to `end`, both included, oldest first."""
    if limit is not None and limit <= 0:
        return
    low, high = entry_ids.pack(start), entry_ids.pack(end)
    for chunk in forward(txn, topic, start):
        if chunk.first > high:
            return
        begin = chunk.place_of(low) if chunk.first < low else 0
        stop = chunk.place_behind(high) if chunk.last > high else chunk.count
        if limit is not None:
            stop = min(stop, begin + limit)
        if begin < stop:
            yield Part(chunk, begin, stop)
            if limit is not None:
                limit -= stop - begin
                if not limit:
                    return


def between_backward(txn: Txn, topic: int, start: Id, end: Id, limit: int | None = None) -> Iterator[Part]:
    """As `between`, but the newest ones, in parts that go from new to old (each part is in order)."""
    if limit is not None and limit <= 0:
        return
    low, high = entry_ids.pack(start), entry_ids.pack(end)
    for chunk in backward(txn, topic, end):
        if chunk.last < low:
            return
        begin = chunk.place_of(low) if chunk.first < low else 0
        stop = chunk.place_behind(high) if chunk.last > high else chunk.count
        if limit is not None:
            begin = max(begin, stop - limit)
        if begin < stop:
            yield Part(chunk, begin, stop)
            if limit is not None:
                limit -= stop - begin
                if not limit:
                    return


def has_room(chunk: Chunk, entry: bytes) -> bool:
    """Whether this entry fits behind those of the chunk."""
    return len(chunk) + _ROW_BYTES + len(entry) <= CAPACITY


def write(txn: Txn, topic: int, key: bytes | None, ids: Sequence[bytes], entries: Sequence[bytes]) -> Chunk:
    """Write entries behind all others, in as many chunks as they need; the last of these.

    `key` is the topic's last chunk's, if these begin with its entries and are to stand in its place.
    """
    of_topic = prefix(topic)
    value = b""
    for start, stop in cut(list(map(len, entries))):
        key = key if start == 0 and key is not None else of_topic + ids[start]
        value = pack(ids[start:stop], entries[start:stop])
        txn.put(key, value)
    assert key is not None
    return Chunk(key, value)


def remove(txn: Txn, chunk: Chunk, places: set[int]) -> None:
    """Remove entries of a chunk, by their places in it; without any it goes."""
    kept = [place for place in range(chunk.count) if place not in places]
    if kept:
        entries = chunk.entries()
        txn.put(chunk.key, pack([chunk.id(place) for place in kept], [entries[place] for place in kept]))
    else:
        txn.delete(chunk.key)


def copy(txn: Txn, topic: int, to: int) -> None:
    """All chunks of a topic once more, as another one's."""
    size = len(prefix(topic))
    at = prefix(topic)
    while found := list(islice(keys.items_from(txn, prefix(topic), at), _COPIED_AT_ONCE)):
        for key, value in found:
            txn.put(prefix(to) + key[size:], value)
        at = found[-1][0] + b"\x00"
