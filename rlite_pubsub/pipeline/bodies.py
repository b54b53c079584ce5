"""Rows become what an entry has behind its id: the array of its fields and values, in wire format. Arrow does it.

    headers    all fields, as they are; without them
    key        the field `key`, unless it is null
    value      the field `value`
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from rlite_pubsub.pipeline.errors import RowRefused

_NOTHING = pa.scalar(b"", pa.binary())


def bodies_of(batch: pa.RecordBatch) -> pa.BinaryArray:
    """One for each row. Raises RowRefused where a row has nothing that an entry could hold."""
    names = batch.schema.names
    if "headers" in names:
        return _of_headers(batch.column("headers"))
    value = batch.column("value")
    if value.null_count:
        raise RowRefused("a value is null: an entry has no such thing")
    value = _sized(_binary(value))
    plain = _joined(b"*2\r\n$5\r\nvalue\r\n", value)
    if "key" not in names or batch.column("key").null_count == batch.num_rows:
        return plain
    key = _binary(batch.column("key"))
    with_key = _joined(b"*4\r\n$3\r\nkey\r\n", _sized(pc.fill_null(key, b"")), b"$5\r\nvalue\r\n", value)
    return with_key if not key.null_count else pc.if_else(pc.is_valid(key), with_key, plain)


def _of_headers(headers: pa.Array) -> pa.BinaryArray:
    if pa.types.is_large_list(headers.type):
        headers = headers.cast(pa.list_(headers.type.value_type))
    lengths = pc.list_value_length(headers)
    if headers.null_count or pc.any(pc.equal(lengths, 0)).as_py():
        raise RowRefused("headers are null or empty: an entry has at least one field")
    flat = headers.flatten()
    names, values = flat.flatten()
    if flat.null_count or names.null_count or values.null_count:
        raise RowRefused("a header, its name or its value is null: an entry has no such thing")
    pairs = _joined(_sized(_binary(names)), _sized(_binary(values)))
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    fields = pc.binary_join(pa.ListArray.from_arrays(offsets, pairs), _NOTHING)
    return _joined(b"*", _text(pc.multiply(lengths, 2)), b"\r\n", fields)


def _binary(column: pa.Array) -> pa.Array:
    """Text as its bytes."""
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def _sized(values: pa.Array) -> pa.Array:
    return _joined(b"$", _text(pc.binary_length(values)), b"\r\n", values, b"\r\n")


def _text(numbers: pa.Array) -> pa.Array:
    return numbers.cast(pa.string()).cast(pa.binary())


def _joined(*pieces: pa.Array | bytes) -> pa.Array:
    scalars = [pa.scalar(piece, pa.binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, _NOTHING)
