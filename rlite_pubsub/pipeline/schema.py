"""The columns of the source, as Spark names their types, and those of them that somebody wants.

    topic      string       the topic's name
    id         string       the entry's id, `ms-seq`
    ms, seq    long         the same, in two halves (those from 2^63 on look negative)
    timestamp  timestamp    the first half; null from the year 9999 on
    uuid       string       the id, as the HTTP API calls an event's
    key        binary       the field `key`; null if there is none
    value      binary       the field `value`; of an entry without one, a JSON object of all its fields
    headers    array<struct<name: binary, value: binary>>    all fields, in order, repeats kept

Any other column of a user's schema is the field of its name. A column says in its metadata what it was made of, so that
the sink knows it again (writing/writer.py), and a field may have a column of another name.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.field_columns import FieldColumn

if TYPE_CHECKING:
    import pyarrow as pa

    from rlite_pubsub.pipeline.options import SourceOptions

MADE, FIELD = "rlite", "rlite.field"
"""Keys of a column's metadata: what the source made it of, or which field it is."""
EVENTS = "events"
"""The topic of the HTTP API's events."""


class Made(StrEnum):
    """The columns that the source makes."""

    TOPIC = "topic"
    ID = "id"
    MS = "ms"
    SEQ = "seq"
    TIMESTAMP = "timestamp"
    UUID = "uuid"
    KEY = "key"
    VALUE = "value"
    BODY = "body"
    HEADERS = "headers"


Origin = Made | bytes
"""Of a column: one of these, or a field's name."""

HEADERS = ArrayType(StructType([StructField("name", BinaryType()), StructField("value", BinaryType())]))
COLUMNS: dict[Made, DataType] = {
    Made.TOPIC: StringType(),
    Made.ID: StringType(),
    Made.MS: LongType(),
    Made.SEQ: LongType(),
    Made.TIMESTAMP: TimestampType(),
    Made.UUID: StringType(),
    Made.KEY: BinaryType(),
    Made.VALUE: BinaryType(),
    Made.BODY: StringType(),
    Made.HEADERS: HEADERS,
}
OF_TEXT = frozenset((Made.KEY, Made.VALUE, Made.BODY))
"""What may be wanted as another type."""
_ALWAYS = (Made.TOPIC, Made.ID, Made.MS, Made.SEQ, Made.TIMESTAMP)
_PLAIN: dict[str, DataType] = {
    "string": StringType(),
    "binary": BinaryType(),
    "boolean": BooleanType(),
    "byte": ByteType(),
    "tinyint": ByteType(),
    "short": ShortType(),
    "smallint": ShortType(),
    "int": IntegerType(),
    "integer": IntegerType(),
    "long": LongType(),
    "bigint": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamp_ntz": TimestampNTZType(),
}
_READABLE = (*map(type, _PLAIN.values()), DecimalType)


def schema_of(options: SourceOptions, samples: Iterable[pa.RecordBatch] = ()) -> StructType:
    """Return the schema of a `load()` without one. `samples`: some entries from which to infer their fields."""
    made = list(map(_made, _ALWAYS))
    if options.fields or options.infer_fields:
        made += [_of_field(one) for one in options.fields or inferred(samples)]
        _check_names(made)
        return StructType([*made, _made(Made.HEADERS)] if options.include_headers else made)
    if is_events(options):
        made += [_made(Made.UUID), _of_field(FieldColumn("type", "type")), _made(Made.BODY)]
    else:
        made += [_made(Made.KEY), _made(Made.VALUE)]
    return StructType(made if options.include_headers is False else [*made, _made(Made.HEADERS)])


def is_events(options: SourceOptions) -> bool:
    return options.subscribe == (EVENTS,)


def _made(what: Made) -> StructField:
    return StructField(what, COLUMNS[what], True, {MADE: str(what)})


def _of_field(one: FieldColumn) -> StructField:
    return StructField(one.column, _type(one.type), True, {FIELD: one.field})


def _type(word: str) -> DataType:
    if word.startswith("decimal("):
        precision, scale = map(int, word[len("decimal(") : -1].split(","))
        return DecimalType(precision, scale)
    return _PLAIN[word]


def _check_names(made: list[StructField]) -> None:
    """Spark does not tell `Item` from `item`. Raises OptionRefused."""
    seen: set[str] = set()
    for one in made:
        if one.name.lower() in seen:
            field = one.metadata.get(FIELD, one.name)
            raise OptionRefused(f"fields: there is a column {one.name!r} already; say `{field} as other_name`")
        seen.add(one.name.lower())


def inferred(samples: Iterable[pa.RecordBatch]) -> list[FieldColumn]:
    """The fields that these entries have, in the order in which they come. One that is called as a column of the source
    has `field_` before its name. Raises OptionRefused where two names differ by their case alone."""
    found: dict[bytes, bool] = {}
    for batch in samples:
        pairs = batch.column("fields").flatten()
        names = pc.unique(pairs.field(0)).to_pylist()
        for name in names:
            values = pairs.field(1).filter(pc.equal(pairs.field(0), name))
            found[name] = found.get(name, True) and _is_text(values)
    return [
        FieldColumn(text, f"field_{text}" if text.lower() in _ALWAYS else text, "string" if is_text else "binary")
        for text, is_text in ((text_of(name), is_text) for name, is_text in found.items())
    ]


def _is_text(values: pa.Array) -> bool:
    try:
        values.cast("string")
    except ValueError:
        return False
    return True


def origin_of(column: StructField, options: SourceOptions) -> Origin:
    """Return what a column is made of, by its metadata or else by its name."""
    told: dict[str, Any] = column.metadata or {}
    if FIELD in told:
        return str(told[FIELD]).encode()
    if MADE in told:
        return Made(told[MADE])
    for one in options.fields:
        if one.column == column.name:
            return one.field.encode()
    if column.name == Made.BODY and not is_events(options):
        return column.name.encode()
    return Made(column.name) if column.name in COLUMNS else column.name.encode()


def check_wanted(schema: StructType, options: SourceOptions) -> None:
    """A schema of the user's says which columns are made, and of which type fields are. Raises OptionRefused."""
    for one in schema.fields:
        origin = origin_of(one, options)
        if not isinstance(origin, Made) or origin in OF_TEXT:
            if not isinstance(one.dataType, _READABLE):
                raise OptionRefused(
                    f"schema: column {one.name!r}: a field can't be read as {one.dataType.simpleString()}; read it as "
                    "string, and use from_json"
                )
        elif one.dataType.simpleString() != COLUMNS[origin].simpleString():
            raise OptionRefused(
                f"schema: column {one.name!r} is {COLUMNS[origin].simpleString()}, not {one.dataType.simpleString()}"
            )
