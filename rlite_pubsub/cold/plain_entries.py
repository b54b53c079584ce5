"""Entries of one field, the same in all of them, become columns by arithmetic alone: most topics have no others.

Where an entry begins and ends is known, and so is its id. That leaves one length that its bytes can announce; whether
they do, and whether all that is not the value is what it must be, is compared. So what comes out is exact, or nothing
does, and hiredis has to read these entries (cold/columns.py). It takes a third of the time.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from rlite_pubsub.cold.columns import FIELDS, SCHEMA, to_batch
from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.storage.topics.chunks import Chunk

_CRLF = pa.scalar(b"\r\n", pa.binary())
_NOTHING = pa.scalar(b"", pa.binary())
_FRAME_BYTES = 4
"""CRLF behind the length, and behind the value."""
_MOST_DIGITS = 9
_COUNTS = 16
"""Most batches of a read are of one size."""


def batch_of(values: Sequence[bytes], topic: bytes) -> pa.RecordBatch:
    """Return chunks' values as columns, like `columns.to_batch`."""
    return _plain(values, topic) or to_batch(values, topic)


def _plain(values: Sequence[bytes], topic: bytes) -> pa.RecordBatch | None:
    ends, firsts, ids, wires = array("i"), [], [], []
    for value in values:
        chunk = Chunk(b"", value)
        firsts.append(len(ends))
        ends.extend(chunk.ends)
        ids.append(chunk.ids)
        wires.append(chunk.blob)
    count = len(ends)
    halves = array("q", b"".join(ids))
    if sys.byteorder == "little":
        halves.byteswap()
    ms, seq = _int64(halves[::2]), _int64(halves[1::2])
    found = _values(_edges(ends, firsts), b"".join(wires), _id_texts(ms, seq))
    if found is None:
        return None
    name, value = found
    pairs = pa.StructArray.from_arrays(
        [pa.repeat(pa.scalar(name, pa.binary()), count), value],
        fields=[FIELDS.value_type.field(0), FIELDS.value_type.field(1)],
    )
    fields = pa.ListArray.from_buffers(FIELDS, count, [None, _places(0, count + 1, 1).buffers()[1]], children=[pairs])
    topics = pa.repeat(pa.scalar(text_of(topic), pa.string()), count)
    return pa.RecordBatch.from_arrays([topics, ms, seq, fields], schema=SCHEMA)


def _edges(ends: array[int], firsts: Sequence[int]) -> array[int]:
    """Return where entries begin and end in the bytes of all chunks together. `ends`: in the bytes of each one's own
    chunk; `firsts`: the entries that begin a chunk."""
    begins = array("i", [0]) + ends[:-1]
    for place in firsts:
        begins[place] = 0
    lengths = pc.subtract(_int32(ends), _int32(begins))
    return array("i", [0]) + _numbers(pc.cumulative_sum_checked(lengths))


@lru_cache(maxsize=_COUNTS)
def _places(start: int, stop: int, step: int) -> pa.Array:
    """Numbers from `start` up to `stop`."""
    return _int32(array("i", range(start, stop, step)))


def _int64(numbers: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])


def _int32(numbers: array[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])


def _numbers(column: pa.Array) -> array[int]:
    numbers = array("i")
    column = column.cast(pa.int32())  # an int of Python's has made it wider
    start = column.offset * numbers.itemsize
    numbers.frombytes(memoryview(column.buffers()[1])[start : start + len(column) * numbers.itemsize])
    return numbers


def _bytes(value: bytes) -> pa.Scalar:
    return pa.scalar(value, pa.binary())


def _texts(numbers: pa.Array) -> pa.Array:
    return numbers.cast(pa.string()).cast(pa.binary())


def _id_texts(ms: pa.Array, seq: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_texts(ms.view(pa.uint64())), _texts(seq.view(pa.uint64())), _bytes(b"-"))


def _values(edges: array[int], wire: bytes, ids: pa.Array) -> tuple[bytes, pa.Array] | None:
    """Return the name of the field, and the values; None where these are other entries.

    Each entry is cut into what stands before its value, the value, and what stands behind it."""
    name = _name(wire[: edges[1]], len(ids[0].as_py()))
    if name is None:
        return None
    middle = b"\r\n*2\r\n$%d\r\n%b\r\n$" % (len(name), name)
    id_lengths = pc.binary_length(ids)
    before_id = pc.binary_join_element_wise(_bytes(b"*2\r\n$"), _texts(id_lengths), _CRLF, _NOTHING)
    starts, ends = _int32(edges[:-1]), _int32(edges[1:])
    before_length = pc.add(pc.add(pc.binary_length(before_id), id_lengths), len(middle))
    rest = pc.subtract(pc.subtract(ends, starts), before_length)
    digits = _digits(rest)
    if digits is None:
        return None
    lengths = pc.subtract(pc.subtract(rest, digits), _FRAME_BYTES)
    begins = pc.add(pc.add(pc.add(starts, before_length), digits), len(b"\r\n"))
    cuts = array("i", bytes(4 * (3 * len(ids) + 1)))
    cuts[:-1:3] = edges[:-1]
    cuts[1::3] = _numbers(begins)
    cuts[2::3] = _numbers(pc.add(begins, lengths))
    cuts[-1] = edges[-1]
    pieces = pa.Array.from_buffers(pa.binary(), 3 * len(ids), [None, pa.py_buffer(cuts), pa.py_buffer(wire)])
    before, values, behind = (pieces.take(_places(place, 3 * len(ids), 3)) for place in range(3))
    expected = pc.binary_join_element_wise(before_id, ids, _bytes(middle), _texts(lengths), _CRLF, _NOTHING)
    if not _all(pc.equal(before, expected)) or not _all(pc.equal(behind, _CRLF)):
        return None
    return name, values


def _digits(rest: pa.Array) -> pa.Array | None:
    """Return how many digits a value's length has, if the length, the value and their ends take this many bytes; None
    if no number of digits fits."""
    bounds = pc.min_max(rest).as_py()
    if bounds["min"] < 1 + _FRAME_BYTES:
        return None
    digits = pa.repeat(pa.scalar(1, pa.int32()), len(rest))
    for more in range(2, _MOST_DIGITS + 1):
        lowest = 10 ** (more - 1) + more + _FRAME_BYTES
        if lowest > bounds["max"]:
            break
        digits = pc.add(digits, pc.greater_equal(rest, lowest).cast(pa.int32()))
    return digits


def _name(entry: bytes, id_length: int) -> bytes | None:
    """Return the name of the first entry's field, if it has only one."""
    at = len(b"*2\r\n$%d\r\n" % id_length) + id_length
    if entry[at : at + 7] != b"\r\n*2\r\n$":
        return None
    length, _, rest = entry[at + 7 :].partition(b"\r\n")
    return rest[: int(length)] if length.isdigit() and len(length) <= _MOST_DIGITS else None


def _all(said: pa.Array) -> bool:
    return bool(pc.all(said).as_py())
