"""The entries of topics, in chunks of one LMDB page each.

    key    't', topic u64, an id (16 bytes) that is at most the chunk's first and above the last of the chunk before
    value  count u32 | count ids, 16 bytes each | count ends u32, of the entries in what follows | entries
           (count and ends are little-endian)

An entry is stored as the bytes that XRANGE sends, so reading is copying: a whole chunk at once if it lies within the
range. Ids stand apart from the entries, so that they are found by bisection and taken (for pending runs) by a slice. A
chunk fills one page, which is as full as pages get and never needs pages side by side; an entry that is larger has a
chunk to itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from struct import Struct, unpack_from
from typing import Final, NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import ENTRIES
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.journal.recording import delete_here
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

CAPACITY: Final = 4096 - 16
"""What one page of LMDB's holds of one value."""
_TOPIC: Final = Struct(">Q")
_COUNT: Final = Struct("<I")
_END: Final = Struct("<I")
_HEAD_BYTES: Final = 4
_END_BYTES: Final = 4
_ROW_BYTES: Final = entry_ids.BYTES + _END_BYTES
_ENDS: Final[dict[int, Struct]] = {}  # by count, which is never larger than a page


class Chunk:
    """A chunk, read from the store."""

    __slots__ = ("count", "key", "value")

    def __init__(self, key: bytes, value: bytes) -> None:
        self.key = key
        self.value = value
        self.count: int = _COUNT.unpack_from(value)[0]

    def __len__(self) -> int:
        """Return how many bytes it takes."""
        return len(self.value)

    @property
    def ids(self) -> bytes:
        """All of its ids, packed, one after the other."""
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
        """Return one id, packed."""
        at = _HEAD_BYTES + entry_ids.BYTES * place
        return self.value[at : at + entry_ids.BYTES]

    @property
    def ends(self) -> tuple[int, ...]:
        """The end of each entry in `blob`."""
        return unpack_from(f"<{self.count}I", self.value, _HEAD_BYTES + entry_ids.BYTES * self.count)

    @property
    def blob(self) -> bytes:
        """All entries, joined."""
        return self.value[_HEAD_BYTES + _ROW_BYTES * self.count :]

    def slice(self, start: int, stop: int) -> bytes:
        """Return the entries from `start` up to `stop`, joined."""
        base = _HEAD_BYTES + _ROW_BYTES * self.count
        if start == 0 and stop == self.count:
            return self.value[base:]
        return self.value[base + self._end(start) : base + self._end(stop)]

    def _end(self, place: int) -> int:
        """Return the end, in `blob`, of the entries before this place."""
        if not place:
            return 0
        at = _HEAD_BYTES + entry_ids.BYTES * self.count + _END_BYTES * (place - 1)
        return int(_END.unpack_from(self.value, at)[0])

    def entries(self, start: int = 0, stop: int | None = None) -> list[bytes]:
        """Return the entries from `start` up to `stop`, one by one."""
        base = _HEAD_BYTES + _ROW_BYTES * self.count
        value, count = self.value, (self.count if stop is None else stop) - start
        at = base + self._end(start)
        ends = unpack_from(f"<{count}I", value, base - _END_BYTES * (self.count - start))
        return [value[at : (at := base + end)] for end in ends]

    def place_of(self, packed: bytes) -> int:
        """Return how many ids of this chunk are smaller."""
        return bisect_left(_Ids(self), packed)

    def place_behind(self, packed: bytes) -> int:
        """Return how many ids of this chunk are smaller or equal."""
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


class ChunkSlice:
    """The part of a chunk that is in a range."""

    __slots__ = ("chunk", "start", "stop")

    def __init__(self, chunk: Chunk, start: int, stop: int) -> None:
        self.chunk = chunk
        self.start = start
        self.stop = stop

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
        at = _HEAD_BYTES + entry_ids.BYTES * self.start
        return self.chunk.value[at : at + entry_ids.BYTES * (self.stop - self.start)]


def prefix(topic: int) -> bytes:
    """Return the beginning of the keys of a topic's chunks."""
    return ENTRIES + _TOPIC.pack(topic)


def pack(ids: Sequence[bytes], entries: Sequence[bytes]) -> bytes:
    """Return a chunk's value."""
    parts = [len(ids).to_bytes(_HEAD_BYTES, "little")]
    parts += ids
    parts.append(_ends(len(ids)).pack(*accumulate(map(len, entries))))
    parts += entries
    return b"".join(parts)


def _ends(count: int) -> Struct:
    """Return the struct of this many ends."""
    found = _ENDS.get(count)
    if found is None:
        found = _ENDS[count] = Struct(f"<{count}I")
    return found


def cut(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield which entries of these sizes share a page: (from, up to)."""
    ends = list(accumulate(map(_ROW_BYTES.__add__, sizes)))
    start, taken = 0, 0
    while start < len(ends):
        stop = max(bisect_right(ends, taken + CAPACITY - _HEAD_BYTES), start + 1)
        yield start, stop
        start, taken = stop, ends[stop - 1]


def last(txn: Txn, topic: int) -> Chunk | None:
    """Return the topic's last chunk."""
    return next(backward(txn, topic, entry_ids.MAX), None)


def forward(txn: Txn, topic: int, start: Id) -> Iterator[Chunk]:
    """Yield the chunks that may hold ids from `start` on, first to last. The store must not be changed meanwhile."""
    of_topic = prefix(topic)
    cursor = txn.cursor()
    wanted = of_topic + entry_ids.pack(start)
    found = databases.seek_back(cursor, of_topic, wanted) or cursor.set_range(wanted)  # the one before may hold it
    while found:
        key, value = cursor.item()
        if not key.startswith(of_topic):
            return
        yield Chunk(key, value)
        found = cursor.next()


def backward(txn: Txn, topic: int, end: Id) -> Iterator[Chunk]:
    """Yield the chunks that may hold ids up to `end`, last to first. The store must not be changed meanwhile."""
    of_topic = prefix(topic)
    cursor = txn.cursor()
    found = databases.seek_back(cursor, of_topic, of_topic + entry_ids.pack(end))
    while found:
        key, value = cursor.item()
        if not key.startswith(of_topic):
            return
        yield Chunk(key, value)
        found = cursor.prev()


def between(txn: Txn, topic: int, start: Id, end: Id, limit: int | None = None) -> Iterator[ChunkSlice]:
    """Yield at most `limit` entries with ids from `start` to `end`, both included, oldest first. The store must not be
    changed meanwhile."""
    if limit is not None and limit <= 0:
        return
    low, high = entry_ids.pack(start), entry_ids.pack(end)
    for chunk in forward(txn, topic, start):
        count = chunk.count
        begin = chunk.place_of(low) if low and chunk.first < low else 0
        if begin < count:
            low = b""  # all chunks from here on are above it
        stop = count if chunk.last <= high else chunk.place_behind(high)
        if limit is not None and stop - begin > limit:
            stop = begin + limit
        if begin < stop:
            yield ChunkSlice(chunk, begin, stop)
            if limit is not None:
                limit -= stop - begin
                if not limit:
                    return
        if stop < count:
            return


def between_backward(txn: Txn, topic: int, start: Id, end: Id, limit: int | None = None) -> Iterator[ChunkSlice]:
    """Like `between`, but with the newest entries, in parts that go from new to old (each part is in order)."""
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
            yield ChunkSlice(chunk, begin, stop)
            if limit is not None:
                limit -= stop - begin
                if not limit:
                    return


def append(txn: Txn, topic: int, tail: Chunk | None, ids: list[bytes], entries: list[bytes]) -> Chunk:
    """Write entries after all others: into the topic's last chunk (`tail`) as far as it has room, and into as many new
    ones as they need. Returns the new last chunk."""
    done = 0
    if tail is not None:
        room = CAPACITY - len(tail.value)
        for entry in entries:
            room -= _ROW_BYTES + len(entry)
            if room < 0:
                break
            done += 1
        if done:
            tail = _extended(tail, ids[:done], entries[:done])
            txn.put(tail.key, tail.value)
    if done < len(ids):
        of_topic = prefix(topic)
        if done:
            ids, entries = ids[done:], entries[done:]
        for start, stop in cut(list(map(len, entries))):
            tail = Chunk(of_topic + ids[start], pack(ids[start:stop], entries[start:stop]))
            txn.put(tail.key, tail.value)
    assert tail is not None
    return tail


def _extended(chunk: Chunk, ids: list[bytes], entries: list[bytes]) -> Chunk:
    """Return the chunk with entries added, its own rows unchanged."""
    value, count = chunk.value, chunk.count
    ends_at = _HEAD_BYTES + entry_ids.BYTES * count
    blob_at = _HEAD_BYTES + _ROW_BYTES * count
    end = len(value) - blob_at
    parts = [(count + len(ids)).to_bytes(_HEAD_BYTES, "little"), value[_HEAD_BYTES:ends_at]]
    parts += ids
    parts.append(value[ends_at:blob_at])
    for entry in entries:
        end += len(entry)
        parts.append(end.to_bytes(_END_BYTES, "little"))
    parts.append(value[blob_at:])
    parts += entries
    return Chunk(chunk.key, b"".join(parts))


def remove(txn: Txn, chunk: Chunk, places: Sequence[int]) -> Chunk | None:
    """Remove entries of a chunk, by their places in it, in order. Returns what is left of it; a chunk without entries
    is removed."""
    if len(places) == chunk.count:
        txn.delete(chunk.key)
        return None
    edges = [-1, *places, chunk.count]
    runs = [(one + 1, other) for one, other in pairwise(edges) if one + 1 < other]
    value = _of_runs(chunk, runs)
    txn.put(chunk.key, value)
    return Chunk(chunk.key, value)


def _of_runs(chunk: Chunk, runs: Sequence[tuple[int, int]]) -> bytes:
    """Return the value of a chunk of only these runs of entries: (from, up to)."""
    ends, ids = chunk.ends, chunk.ids
    new_ends: list[int] = []
    at = 0
    for start, stop in runs:
        gone = (ends[start - 1] if start else 0) - at
        new_ends += [end - gone for end in ends[start:stop]] if gone else ends[start:stop]
        at = new_ends[-1]
    count = len(new_ends)
    width = entry_ids.BYTES
    return b"".join((
        _COUNT.pack(count),
        *[ids[width * start : width * stop] for start, stop in runs],
        Struct(f"<{count}I").pack(*new_ends),
        *[chunk.slice(start, stop) for start, stop in runs],
    ))  # fmt: skip


class Trimmed(NamedTuple):
    """What a trim has removed."""

    entries: int
    size_bytes: int
    """The size of the entries."""
    last: bytes
    """The highest of their ids, packed; empty if there are none."""


def trim(txn: Txn, topic: int, count: int) -> Trimmed:
    """Remove the oldest `count` entries, or all there are."""
    left, size_bytes, highest = count, 0, b""
    cursor = txn.cursor()
    of_topic = prefix(topic)
    found = cursor.set_range(of_topic)
    while left and found:
        key, value = cursor.item()
        if not key.startswith(of_topic):
            break
        chunk = Chunk(key, value)
        if chunk.count > left:
            size_bytes += chunk.ends[left - 1]
            highest = chunk.id(left - 1)
            txn.put(key, _of_runs(chunk, [(left, chunk.count)]))
            left = 0
        else:
            size_bytes += len(value) - _HEAD_BYTES - _ROW_BYTES * chunk.count
            highest = chunk.last
            left -= chunk.count
            found = delete_here(txn, cursor)  # which leaves it at the next one
    return Trimmed(count - left, size_bytes, highest)


def find(txn: Txn, topic: int, ids: Sequence[bytes]) -> Iterator[tuple[Chunk, list[int]]]:
    """Yield the chunks that hold entries of these packed ids (sorted and distinct), with their places in them, in
    order. Ids without an entry are skipped. The store must not be changed meanwhile."""
    place = 0
    while place < len(ids):
        wanted = ids[place]
        chunk = next((each for each in forward(txn, topic, entry_ids.unpack(wanted)) if each.last >= wanted), None)
        if chunk is None:
            break
        stop = bisect_right(ids, chunk.last, place)
        here = _places(chunk, ids[place:stop])
        if here:
            yield chunk, here
        place = stop


def _places(chunk: Chunk, ids: Sequence[bytes]) -> list[int]:
    """Return the places of those of these ids that the chunk has; none of them is after its last."""
    if len(ids) == 1:
        place = chunk.place_of(ids[0])
        return [place] if chunk.id(place) == ids[0] else []
    wanted = set(ids)
    return [place for place in range(chunk.count) if chunk.id(place) in wanted]


def copy(txn: Txn, topic: int, to: int) -> None:
    """Copy all chunks of a topic to another one."""
    databases.copy_all(txn, prefix(topic), prefix(to))
