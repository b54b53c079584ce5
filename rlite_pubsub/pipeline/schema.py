"""The columns of the source (columns.py) as Spark has them.

A column says in its metadata what it was made of, so that the sink knows it again (writing/writer.py), and a field may
have a column of another name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

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

from rlite_pubsub.pipeline import columns, text_types
from rlite_pubsub.pipeline.columns import Column, Made

if TYPE_CHECKING:
    import pyarrow as pa

    from rlite_pubsub.pipeline.options import SourceOptions

MADE, FIELD = "rlite", "rlite.field"
"""Keys of a column's metadata: what the source made it of, or which field it is."""
_TYPES: dict[str, DataType] = {
    one.simpleString(): one
    for one in (
        StringType(),
        BinaryType(),
        BooleanType(),
        ByteType(),
        ShortType(),
        IntegerType(),
        LongType(),
        FloatType(),
        DoubleType(),
        DateType(),
        TimestampType(),
        TimestampNTZType(),
        ArrayType(StructType([StructField("name", BinaryType()), StructField("value", BinaryType())])),
    )
}


def schema_of(options: SourceOptions, samples: Iterable[pa.RecordBatch] = ()) -> StructType:
    """Return the schema of a `load()` without one. `samples`: some entries from which to infer their fields. Raises
    OptionRefused."""
    return structure(columns.columns_of(options, samples))


def structure(made: Iterable[Column]) -> StructType:
    """Return columns as Spark has them; each says what it was made of."""
    return StructType([_field(one) for one in made])


def _field(one: Column) -> StructField:
    told = {MADE: str(one.origin)} if isinstance(one.origin, Made) else {FIELD: one.origin.decode()}
    parts = text_types.parts_of_decimal(one.kind)
    return StructField(one.name, _TYPES[one.kind] if parts is None else DecimalType(*parts), True, told)


def wanted(schema: StructType, options: SourceOptions) -> list[Column]:
    """Return the columns of a schema: the user's, which says which are made and as what, or our own. Raises
    OptionRefused."""
    found = [_column(one, options) for one in schema.fields]
    columns.check(found)
    return found


def _column(one: StructField, options: SourceOptions) -> Column:
    told: dict[str, Any] = one.metadata or {}
    kind = one.dataType.simpleString()
    if FIELD in told:
        return Column(one.name, kind, str(told[FIELD]).encode())
    if MADE in told:
        return Column(one.name, kind, Made(told[MADE]))
    return Column(one.name, kind, columns.named(one.name, options))
