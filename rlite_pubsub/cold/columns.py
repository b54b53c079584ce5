"""Entries as they are sent, and as columns: two layouts of the same bytes, each made from the other exactly.

    ms      int64           both halves of the id, as 64 bits: from 2^63 on they look negative (`as_signed`)
    seq     int64
    fields  list<struct<name: binary, value: binary>>    in order, repeats kept
    topic   string          the name as text; its exact bytes are in a block's metadata

Nothing here runs once for each entry in Python: hiredis reads what is sent, Arrow writes it.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate, chain
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING

import hiredis
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from rlite_pubsub.cold.errors import EntryMalformed
from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk, ChunkSlice

if TYPE_CHECKING:
    from rlite_pubsub.storage.topics.entry_ids import Id

GROUP_ROWS = 16_384
GROUP_BYTES = 8 << 20
"""A row group has no more than this of both, except for an entry that is larger by itself."""

FIELDS = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("name", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]),
        nullable=False,
    )
)
SCHEMA = pa.schema([
    pa.field("topic", pa.string(), nullable=False),
    pa.field("ms", pa.int64(), nullable=False),
    pa.field("seq", pa.int64(), nullable=False),
    pa.field("fields", FIELDS, nullable=False),
])  # fmt: skip

_COUNT = Struct("<I")
_IS_LITTLE = sys.byteorder == "little"
_FIELDS_OF = itemgetter(1)
_SIGN = 1 << 63


def as_signed(half: int) -> int:
    """Half an id, as its column holds it."""
    return half - (half >= _SIGN) * 2 * _SIGN


def as_unsigned(number: int) -> int:
    """Return the half of an id that a column's number stands for."""
    return number % (2 * _SIGN)


def to_batch(values: Iterable[bytes | Chunk | ChunkSlice], topic: bytes) -> pa.RecordBatch:
    """Return the entries of chunks' values, or of parts of chunks, as columns. Raises EntryMalformed."""
    ids, wires = [], []
    for value in values:
        part = Chunk(b"", value) if isinstance(value, bytes) else value
        ids.append(part.ids)
        wires.append(part.blob if isinstance(part, Chunk) else part.wire)
    return _batch(b"".join(ids), b"".join(wires), topic)


def to_batches(parts: Iterable[bytes | Chunk | ChunkSlice], topic: bytes) -> Iterator[pa.RecordBatch]:
    """The same in as many batches as there will be row groups, each proved: what it becomes again is what it was."""
    ids: list[bytes] = []
    wires: list[bytes] = []
    rows = size = 0
    for run_ids, run_wires in _small_runs(parts):
        count = len(run_ids) // entry_ids.BYTES
        if rows and (rows + count > GROUP_ROWS or size + len(run_wires) > GROUP_BYTES):
            yield _proved(b"".join(ids), b"".join(wires), topic)
            ids, wires, rows, size = [], [], 0, 0
        ids.append(run_ids)
        wires.append(run_wires)
        rows += count
        size += len(run_wires)
    if rows:
        yield _proved(b"".join(ids), b"".join(wires), topic)


def _small_runs(parts: Iterable[bytes | Chunk | ChunkSlice]) -> Iterator[tuple[bytes, bytes]]:
    """(ids, entries as sent): as they come, or cut where they would not fit into a row group."""
    for value in parts:
        part = Chunk(b"", value) if isinstance(value, bytes) else value
        chunk, start, stop = (part, 0, part.count) if isinstance(part, Chunk) else (part.chunk, part.start, part.stop)
        ends = chunk.ends
        while start < stop:
            base = ends[start - 1] if start else 0
            to = min(stop, start + GROUP_ROWS)
            while to > start + 1 and ends[to - 1] - base > GROUP_BYTES:
                to = (start + to) // 2
            run = ChunkSlice(chunk, start, to)
            yield run.ids, run.wire
            start = to


def _proved(ids: bytes, wire: bytes, topic: bytes) -> pa.RecordBatch:
    batch = _batch(ids, wire, topic)
    again = to_chunk(batch)
    if again.ids != ids or again.blob != wire:
        raise EntryMalformed(text_of(topic), _where(ids, "these entries are not what their ids and fields say"))
    return batch


def _where(ids: bytes, what: str) -> str:
    first, last = entry_ids.unpack(ids), entry_ids.unpack(ids, len(ids) - entry_ids.BYTES)
    return f"{what}, between {entry_ids.text(first).decode()} and {entry_ids.text(last).decode()}"


def _batch(ids: bytes, wire: bytes, topic: bytes) -> pa.RecordBatch:
    count = len(ids) // entry_ids.BYTES
    lists = field_lists(ids, wire, count, topic) if count else []
    flat = list(chain.from_iterable(lists))
    try:
        fields = pa.ListArray.from_arrays(_pair_offsets(lists), _pairs(flat), type=FIELDS)
    except (ValueError, TypeError) as failure:
        raise EntryMalformed(text_of(topic), _where(ids, f"these entries make no columns ({failure})")) from failure
    halves = array("q")
    halves.frombytes(ids)
    if _IS_LITTLE:
        halves.byteswap()
    name = pa.repeat(pa.scalar(text_of(topic), pa.string()), count)
    return pa.RecordBatch.from_arrays([name, _int64(halves[::2]), _int64(halves[1::2]), fields], schema=SCHEMA)


def field_lists(ids: bytes, wire: bytes, count: int, topic: bytes) -> list[list[bytes]]:
    """Return the names and values of each entry."""
    reader = hiredis.Reader()
    reader.feed(b"*%d\r\n" % count)
    reader.feed(wire)
    try:
        rows = reader.gets()
        if isinstance(rows, list) and not reader.has_data():
            lists: list[list[bytes]] = list(map(_FIELDS_OF, rows))
            if set(map(type, lists)) == {list}:
                return lists
        reason = "these bytes are not that many entries"
    except (hiredis.HiredisError, IndexError, TypeError) as failure:
        reason = f"these bytes are not entries ({failure})"
    raise EntryMalformed(text_of(topic), _where(ids, reason))


def _pair_offsets(lists: list[list[bytes]]) -> pa.Int32Array:
    """Return where each entry's fields begin, in pairs of name and value."""
    ends = pa.array([0, *accumulate(map(len, lists))], pa.int32())
    if pc.max(pc.bit_wise_and(ends, 1)).as_py():
        raise ValueError("a name without a value")
    return pc.shift_right(ends, 1)


def _pairs(flat: list[bytes]) -> pa.StructArray:
    parts = [_binary(flat[::2]), _binary(flat[1::2])]
    return pa.StructArray.from_arrays(parts, fields=list(FIELDS.value_type))


def _binary(values: list[bytes]) -> pa.BinaryArray:
    made = pa.array(values, pa.binary())
    if isinstance(made, pa.ChunkedArray):
        raise ValueError("they are more than 2 GiB")
    if made.null_count:
        raise ValueError("a null")
    return made


def _int64(values: array[int]) -> pa.Array:
    return pa.Int64Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def to_chunk(batch: pa.RecordBatch) -> Chunk:
    """Return the entries as they are sent, as one chunk without a key."""
    count = batch.num_rows
    if not count:
        return Chunk(b"", _COUNT.pack(0))
    ms, seq, fields = batch.column("ms"), batch.column("seq"), batch.column("fields")
    wire = _wire(ms.view(pa.uint64()), seq.view(pa.uint64()), fields)
    _, ends, data = wire.buffers()
    width = 4
    offsets = memoryview(ends)[wire.offset * width : (wire.offset + count + 1) * width].cast("I")
    base, end = offsets[0], offsets[count]
    assert not base, "what Arrow joins begins at its buffer's beginning"
    value = b"".join((_COUNT.pack(count), packed_ids(ms, seq), _little(offsets[1:]), memoryview(data)[:end]))
    return Chunk(b"", value)


def _little(ends: memoryview) -> bytes | memoryview:
    if _IS_LITTLE:
        return ends
    swapped = array("I", ends)
    swapped.byteswap()
    return swapped.tobytes()


def packed_ids(ms: pa.Int64Array, seq: pa.Int64Array) -> bytes:
    """Ids as the store packs them, one behind the other."""
    halves = array("q", bytes(entry_ids.BYTES * len(ms)))
    halves[::2] = _numbers(ms)
    halves[1::2] = _numbers(seq)
    if _IS_LITTLE:
        halves.byteswap()
    return halves.tobytes()


def _numbers(column: pa.Int64Array) -> array[int]:
    numbers = array("q")
    start = column.offset * numbers.itemsize
    numbers.frombytes(memoryview(column.buffers()[1])[start : start + len(column) * numbers.itemsize])
    return numbers


def _wire(ms: pa.Array, seq: pa.Array, fields: pa.ListArray) -> pa.BinaryArray:
    """Each entry as it is sent. Two plans instead of dozens of kernels: each call from Python wants the GIL back, for
    which a busy event loop lets it wait."""
    names, values = fields.flatten().flatten()
    pairs = _planned(_PAIR, [names, values])
    offsets = fields.offsets
    if offsets[0].as_py():
        offsets = pc.subtract(offsets, offsets[0])
    lists = pa.ListArray.from_arrays(offsets, pairs)
    bodies = pc.binary_join(lists, b"")
    return _planned(_ENTRY, [ms, seq, pc.list_value_length(lists), bodies])


def _planned(plan: pc.Expression, inputs: list[pa.Array]) -> pa.BinaryArray:
    """Return what a plan makes of these columns, which it knows by their numbers."""
    table = pa.Table.from_arrays(inputs, names=list("0123"[: len(inputs)]))
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(table)),
        acero.Declaration("project", acero.ProjectNodeOptions([plan], ["wire"])),
    ]
    made = acero.Declaration.from_sequence(steps).to_table(use_threads=False).column(0)
    return made.chunk(0) if made.num_chunks == 1 else pa.concat_arrays([pa.array([], pa.binary()), *made.chunks])


def _plan_of_pair() -> pc.Expression:
    """Return a name and its value."""
    return _joined(*_sized(pc.field("0")), *_sized(pc.field("1")))


def _plan_of_entry() -> pc.Expression:
    """Return the halves of an id, how many pairs there are, and the pairs."""
    entry_id = _joined(_text(pc.field("0")), "-", _text(pc.field("1")))
    words = pc.multiply(pc.field("2"), 2)
    return _joined("*2\r\n", *_sized(entry_id), "*", _text(words), "\r\n", pc.field("3"))


def _sized(value: pc.Expression) -> list[pc.Expression | str]:
    """Return a bulk string: $5, hello."""
    return ["$", _text(pc.binary_length(value)), "\r\n", value, "\r\n"]


def _joined(*pieces: pc.Expression | str) -> pc.Expression:
    every = [_bytes(piece) if isinstance(piece, str) else piece for piece in pieces]
    return pc.binary_join_element_wise(*every, _bytes(""))


def _bytes(value: str) -> pc.Expression:
    return pc.scalar(pa.scalar(value.encode(), pa.binary()))


def _text(numbers: pc.Expression) -> pc.Expression:
    return numbers.cast(pa.string()).cast(pa.binary())


_PAIR = _plan_of_pair()
_ENTRY = _plan_of_entry()


def id_at(batch: pa.RecordBatch, place: int) -> Id:
    """One id of a batch."""
    return as_unsigned(batch.column("ms")[place].as_py()), as_unsigned(batch.column("seq")[place].as_py())


def is_in_order(batch: pa.RecordBatch) -> bool:
    """Return whether each id is above the one before."""
    ms, seq = batch.column("ms").view(pa.uint64()), batch.column("seq").view(pa.uint64())
    if len(ms) < 2:
        return True
    above = pc.greater(ms[1:], ms[:-1])
    beside = pc.and_(pc.equal(ms[1:], ms[:-1]), pc.greater(seq[1:], seq[:-1]))
    return bool(pc.all(pc.or_(above, beside)).as_py())
