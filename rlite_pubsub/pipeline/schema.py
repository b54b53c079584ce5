"""The columns of the source, as Spark names their types, and those of them that somebody wants."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rlite_pubsub.pipeline.errors import OptionRefused

HEADERS = ArrayType(StructType([StructField("name", BinaryType()), StructField("value", BinaryType())]))
COLUMNS: dict[str, DataType] = {
    "topic": StringType(),
    "id": StringType(),
    "ms": LongType(),
    "seq": LongType(),
    "timestamp": TimestampType(),
    "key": BinaryType(),
    "value": BinaryType(),
    "headers": HEADERS,
}


def schema_of(*, include_headers: bool) -> StructType:
    """What a `load()` has."""
    names = [name for name in COLUMNS if include_headers or name != "headers"]
    return StructType([StructField(name, COLUMNS[name]) for name in names])


def check_wanted(schema: StructType) -> None:
    """A schema of the user's may leave columns out: then they are not made. Raises OptionRefused."""
    for one in schema.fields:
        known = COLUMNS.get(one.name)
        if known is None:
            raise OptionRefused(f"schema: no column {one.name!r}; there are {', '.join(COLUMNS)}")
        if one.dataType.simpleString() != known.simpleString():
            raise OptionRefused(
                f"schema: column {one.name!r} is {known.simpleString()}, not {one.dataType.simpleString()}"
            )
