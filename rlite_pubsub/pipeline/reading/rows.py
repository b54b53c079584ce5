"""Entries as columns (cold/columns.py) become rows of the source: the same entries, in the same order. Arrow does it.

Which column has what is in columns.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from rlite_pubsub.pipeline import text_types
from rlite_pubsub.pipeline.columns import Column, Made
from rlite_pubsub.pipeline.errors import ValueRefused
from rlite_pubsub.pipeline.reading.field_text import is_text, json_of, value_text
from rlite_pubsub.storage.topics import uuid6

Maker = Callable[[pa.RecordBatch], pa.Array]

_KEY, _VALUE, _TYPE, _BODY = b"key", b"value", b"type", b"body"
LAST_MS = 253_370_764_799_999
"""The end of the year 9998: Python has no datetime behind 9999, wherever its zone, and so no row could be collected."""


class FetchedRows:
    """Makes the columns that are wanted, in their order. `schema`: the same columns, as Arrow has them."""

    def __init__(self, columns: Sequence[Column], schema: pa.Schema, *, is_permissive: bool) -> None:
        self._schema = schema
        self._is_permissive = is_permissive
        self._columns = [(one, _maker(one)) for one in columns]
        self.has_fields = any(one.is_text or one.origin == Made.HEADERS for one in columns)
        """Whether any is made of an entry's fields."""

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Raises ValueRefused."""
        made = [
            self._made(one, make(batch), batch).cast(field.type)
            for (one, make), field in zip(self._columns, self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(made, schema=self._schema)

    def _made(self, column: Column, found: pa.Array, batch: pa.RecordBatch) -> pa.Array:
        if not column.is_text:
            return found
        made = text_types.typed(found, column.kind)
        row = None if self._is_permissive else text_types.first_bad(found, made)
        if row is None:
            return made
        entry = _ids(batch.slice(row, 1))[0].as_py()
        raise ValueRefused(batch.column("topic")[row].as_py(), entry, column.name, found[row].as_py(), column.kind)


def _maker(column: Column) -> Maker:
    return _MAKERS[column.origin] if isinstance(column.origin, Made) else partial(_field, column.origin)


def _ids(batch: pa.RecordBatch) -> pa.Array:
    halves = [batch.column(name).view(pa.uint64()).cast(pa.string()) for name in ("ms", "seq")]
    return pc.binary_join_element_wise(*halves, "-")


def _timestamps(batch: pa.RecordBatch) -> pa.Array:
    ms = batch.column("ms")
    is_one = pc.and_(pc.greater_equal(ms, 0), pc.less_equal(ms, LAST_MS))
    return pc.multiply(pc.if_else(is_one, ms, None), 1000).view(pa.timestamp("us", "UTC"))


def _uuids(batch: pa.RecordBatch) -> pa.Array:
    halves = [batch.column(name).view(pa.uint64()).to_pylist() for name in ("ms", "seq")]
    return pa.array([uuid6.text(entry_id).decode() for entry_id in zip(*halves, strict=True)], pa.string())


def _field(name: bytes, batch: pa.RecordBatch) -> pa.Array:
    """Return, for each entry, the value of the first field of this name; null if there is none."""
    fields = batch.column("fields")
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


def _values(batch: pa.RecordBatch) -> pa.Array:
    """The field `value`; of an entry without one, all that it has, under its names."""
    found = _field(_VALUE, batch)
    if not found.null_count:
        return found
    return _filled(found, batch.column("fields"))


def _bodies(batch: pa.RecordBatch) -> pa.Array:
    """Return the bodies as the HTTP API shows an event's (gateway/events/event.py)."""
    found = _field(_BODY, batch)
    if found.null_count:
        found = _filled(found, batch.column("fields"), without=_TYPE)
    try:
        found.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([one if is_text(one) else value_text(one) for one in found.to_pylist()], pa.binary())
    return found


def _filled(found: pa.Array, fields: pa.ListArray, without: bytes | None = None) -> pa.Array:
    """Replace nulls by the entries' fields as JSON."""
    is_missing = pc.is_null(found)
    rows = pc.indices_nonzero(is_missing)
    text = json_of(fields.take(rows), without)
    return pc.replace_with_mask(found, is_missing, text)


_MAKERS: dict[Made, Maker] = {
    Made.TOPIC: lambda batch: batch.column("topic"),
    Made.ID: _ids,
    Made.MS: lambda batch: batch.column("ms"),
    Made.SEQ: lambda batch: batch.column("seq"),
    Made.TIMESTAMP: _timestamps,
    Made.UUID: _uuids,
    Made.KEY: partial(_field, _KEY),
    Made.VALUE: _values,
    Made.BODY: _bodies,
    Made.HEADERS: lambda batch: batch.column("fields"),
}
