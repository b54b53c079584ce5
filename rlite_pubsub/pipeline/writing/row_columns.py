"""The meaning of a frame's columns for an entry: each is a field, under the column's name.

Not so:
 - `topic` names the topic, unless the option does;
 - `headers`, a list of names and values, is as many fields; a column beside it stands in the place of the field of its
   name;
 - what the source has made of an entry (schema.py) is not written once more: its id is kept, and `ms`, `seq`,
   `timestamp`, `uuid` say nothing that the id does not. Beside `headers` neither do `key`, `value` and other fields, as
   long as they are what was read.

So what was read is written as it was, and what was changed as it is now. Columns of one's own that have such a name are
fields; `keepIds` makes the column `id` the entries' ids.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from rlite_pubsub.pipeline.columns import Made
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.schema import FIELD, MADE

_OF_THE_ID = frozenset((Made.MS, Made.SEQ, Made.TIMESTAMP, Made.UUID))
_ATOMS = (BinaryType, BooleanType, DateType, NullType, NumericType, StringType, TimestampNTZType, TimestampType)
_TEXTS = ("string", "binary")
_HEADERS = tuple(f"array<struct<name:{one},value:{other}>>" for one in _TEXTS for other in _TEXTS)


class FieldOf(NamedTuple):
    """A column by its place, and the field's name."""

    place: int
    name: bytes


class RowColumns(NamedTuple):
    """The meaning of a frame's columns."""

    topic: int | None
    """None: the option says it."""
    ids: int | None
    """None: the server makes them."""
    headers: int | None
    fields: tuple[FieldOf, ...]


def row_columns(options: SourceOptions, schema: StructType) -> RowColumns:
    """Raises OptionRefused where rows of this schema cannot become entries."""
    columns = list(enumerate(schema.fields))
    headers = next((place for place, one in columns if _is_headers(one)), None)
    ids = next((place for place, one in columns if _is_id(one, options)), None)
    topic = next((place for place, one in columns if one.name == Made.TOPIC), None) if options.topic is None else None
    if options.topic is None and topic is None:
        raise OptionRefused("say the option topic, or have a column topic")
    _check_text(schema, topic, "topic")
    _check_text(schema, ids, "id")
    made = {_made(one) for one in schema.fields}
    is_entries = bool(made & {Made.ID, Made.HEADERS}) or made >= {Made.MS, Made.SEQ} or headers is not None
    fields = []
    for place, one in columns:
        if place in (headers, ids, topic) or (is_entries and _says_nothing_new(one, has_headers=headers is not None)):
            continue
        if not _is_writable(one.dataType):
            raise OptionRefused(f"column {one.name!r}: {one.dataType.simpleString()} can't be a field: cast it")
        fields.append(FieldOf(place, str((one.metadata or {}).get(FIELD, one.name)).encode()))
    if not fields and headers is None:
        raise OptionRefused("no column can be a field")
    return RowColumns(topic, ids, headers, tuple(fields))


def _made(column: StructField) -> str | None:
    found = (column.metadata or {}).get(MADE)
    return None if found is None else str(found)


def _is_headers(column: StructField) -> bool:
    return column.name == Made.HEADERS and column.dataType.simpleString() in _HEADERS


def _is_id(column: StructField, options: SourceOptions) -> bool:
    return column.name == Made.ID and (options.keep_ids or _made(column) == Made.ID)


def _says_nothing_new(column: StructField, *, has_headers: bool) -> bool:
    made = _made(column)
    if made in _OF_THE_ID or made == Made.TOPIC:
        return True
    return has_headers and (made is not None or FIELD in (column.metadata or {}))


def _check_text(schema: StructType, place: int | None, name: str) -> None:
    if place is not None and not isinstance(schema.fields[place].dataType, StringType):
        raise OptionRefused(f"column {name!r}: is string, not {schema.fields[place].dataType.simpleString()}")


def _is_writable(type: DataType) -> bool:
    if isinstance(type, ArrayType):
        return _is_writable(type.elementType)
    if isinstance(type, MapType):
        return isinstance(type.keyType, StringType) and _is_writable(type.valueType)
    if isinstance(type, StructType):
        return all(_is_writable(one.dataType) for one in type.fields)
    return isinstance(type, _ATOMS)
