"""Rows become what an entry has behind its id: the array of its fields and values, in wire format. Arrow does it.

A column that is null is a field that is not there. Numbers, booleans, dates and times are text as one writes it
(`3.5`, `true`, `2026-11-19`, `2026-11-19T10:00:00.000000Z`), and what has parts is JSON.
"""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from rlite_pubsub.pipeline.errors import RowRefused
from rlite_pubsub.pipeline.writing.row_columns import RowColumns

_NOTHING = pa.scalar(b"", pa.binary())
_TIME = "%Y-%m-%dT%H:%M:%S"


def bodies_of(batch: pa.RecordBatch, columns: RowColumns) -> pa.BinaryArray:
    """One for each row. Raises RowRefused where a row has nothing that an entry could hold."""
    fields = [(one.name, texts(batch.column(one.place))) for one in columns.fields]
    if columns.headers is not None:
        count, pairs = _of_headers(batch.column(columns.headers), frozenset(name for name, _ in fields))
        return _counted(count, [pairs], fields)
    if not any(values.null_count for _, values in fields):
        pieces: list[pa.Array | bytes] = [b"*%d\r\n" % (2 * len(fields))]
        for name, values in fields:
            pieces += [_word(name), _sized(values)]
        return _joined(*pieces)
    return _counted(None, [], fields)


def _counted(
    count: pa.Array | None, pieces: list[pa.Array | bytes], fields: list[tuple[bytes, pa.BinaryArray]]
) -> pa.BinaryArray:
    """`pieces` are this many fields in each row, and these are the others that are not null."""
    for name, values in fields:
        is_there = pc.is_valid(values)
        pair = _joined(_word(name), _sized(pc.fill_null(values, b"")))
        pieces.append(pc.if_else(is_there, pair, _NOTHING) if values.null_count else pair)
        there = is_there.cast(pa.int32())
        count = there if count is None else pc.add(count, there)
    if pc.any(pc.equal(count, 0)).as_py():
        raise RowRefused("all columns of a row are null: an entry has at least one field")
    return _joined(b"*", _text(pc.multiply(count, 2)), b"\r\n", *pieces)


def _of_headers(headers: pa.Array, others: frozenset[bytes]) -> tuple[pa.Array, pa.BinaryArray]:
    """(how many, the fields themselves) of each row, without those for which there is a column."""
    if pa.types.is_large_list(headers.type):
        headers = headers.cast(pa.list_(headers.type.value_type))
    flat = headers.flatten()
    names, values = (_binary(part) for part in flat.flatten())
    if flat.null_count or names.null_count or values.null_count:
        raise RowRefused("a header, its name or its value is null: an entry has no such thing")
    lengths = pc.fill_null(pc.list_value_length(headers), 0)
    if others:
        is_kept = pc.invert(pc.is_in(names, pa.array(sorted(others), pa.binary())))
        running = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(is_kept.cast(pa.int32()))])
        ends = pc.cumulative_sum(lengths)
        lengths = pc.subtract(running.take(ends), running.take(pc.subtract(ends, lengths)))
        names, values = names.filter(is_kept), values.filter(is_kept)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    pairs = _joined(_sized(names), _sized(values))
    return lengths, pc.binary_join(pa.ListArray.from_arrays(offsets.cast(pa.int32()), pairs), _NOTHING)


def _word(name: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(name), name)


def _sized(values: pa.Array) -> pa.Array:
    return _joined(b"$", _text(pc.binary_length(values)), b"\r\n", values, b"\r\n")


def _text(numbers: pa.Array) -> pa.Array:
    return numbers.cast(pa.string()).cast(pa.binary())


def _joined(*pieces: pa.Array | bytes) -> pa.Array:
    scalars = [pa.scalar(piece, pa.binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, _NOTHING)


def _binary(column: pa.Array) -> pa.Array:
    """Text as its bytes."""
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


# -- values as text


def texts(column: pa.Array) -> pa.BinaryArray:
    """Return a field's values as text; null where the column is."""
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.binary())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _binary(column)
    if pa.types.is_nested(kind):
        return pa.array([None if one is None else _json(one, kind) for one in column.to_pylist()], pa.binary())
    if pa.types.is_timestamp(kind):
        column = pc.strftime(column, f"{_TIME}Z" if kind.tz else _TIME)
    return column.cast(pa.string()).cast(pa.binary())


def _json(value: object, kind: pa.DataType) -> bytes:
    return json.dumps(_plain(value, kind), ensure_ascii=False).encode()


def _plain(value: object, kind: pa.DataType) -> object:
    """Return a value as JSON has it."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if pa.types.is_map(kind) and isinstance(value, list):
        return {str(key): _plain(one, kind.item_type) for key, one in value}
    if isinstance(value, list):
        return [_plain(one, kind.value_type) for one in value]
    if isinstance(value, dict):
        return {field.name: _plain(value[field.name], field.type) for field in kind}
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat(timespec="microseconds") + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    assert isinstance(value, Decimal)
    return str(value)
