"""Entries as columns (cold/columns.py) become rows of the source. Arrow does it, batch by batch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

_KEY, _VALUE = b"key", b"value"
_LAST_MS = 253_370_764_799_999
"""The end of the year 9998: Python has no datetime behind 9999, wherever its zone, and so no row could be collected."""


class Rows:
    """Makes the columns that are wanted, in their order."""

    def __init__(self, schema: pa.Schema) -> None:
        """`schema`: as Spark wants to be given it."""
        self._schema = schema

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same entries, in the same order."""
        made = [_MAKERS[field.name](batch) for field in self._schema]
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(made, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _ids(batch: pa.RecordBatch) -> pa.Array:
    halves = [batch.column(name).view(pa.uint64()).cast(pa.string()) for name in ("ms", "seq")]
    return pc.binary_join_element_wise(*halves, "-")


def _timestamps(batch: pa.RecordBatch) -> pa.Array:
    ms = batch.column("ms")
    is_one = pc.and_(pc.greater_equal(ms, 0), pc.less_equal(ms, _LAST_MS))
    return pc.multiply(pc.if_else(is_one, ms, None), 1000).view(pa.timestamp("us", "UTC"))


def _keys(batch: pa.RecordBatch) -> pa.Array:
    return _first_of(batch.column("fields"), _KEY)


def _values(batch: pa.RecordBatch) -> pa.Array:
    fields = batch.column("fields")
    lengths = pc.list_value_length(fields)
    is_single = pc.equal(lengths, 1)
    values = fields.flatten().field(1)
    if pc.all(is_single).as_py():
        return values
    found = _first_of(fields, _VALUE)
    if not pc.any(is_single).as_py():
        return found
    singles = values.take(pc.if_else(is_single, pc.subtract(pc.cumulative_sum(lengths), 1), None))
    return pc.if_else(is_single, singles, found)


def _first_of(fields: pa.ListArray, name: bytes) -> pa.Array:
    """Of each entry the value of the first field of this name; null if there is none."""
    flat = fields.flatten()
    is_it = pc.equal(flat.field(0), pa.scalar(name, pa.binary()))
    if not pc.any(is_it).as_py():
        return pa.nulls(len(fields), pa.binary())
    rows = pc.list_parent_indices(fields).filter(is_it)
    values = flat.field(1).filter(is_it)
    if len(rows) == len(fields) and pc.all(pc.not_equal(rows[1:], rows[:-1])).as_py() is not False:
        return values
    is_first = pa.concat_arrays([pa.array([True]), pc.not_equal(rows[1:], rows[:-1])])
    rows, values = rows.filter(is_first), values.filter(is_first)
    every = pc.cumulative_sum(pa.repeat(pa.scalar(1, rows.type), len(fields)), start=-1)
    return values.take(pc.index_in(every, rows))


_MAKERS: dict[str, Callable[[pa.RecordBatch], pa.Array]] = {
    "topic": lambda batch: batch.column("topic"),
    "id": _ids,
    "ms": lambda batch: batch.column("ms"),
    "seq": lambda batch: batch.column("seq"),
    "timestamp": _timestamps,
    "key": _keys,
    "value": _values,
    "headers": lambda batch: batch.column("fields"),
}
