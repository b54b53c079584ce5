"""`read_topic`: topics as a DataFrame, most of which Spark reads by itself, as the Parquet files that blocks are.

What `spark.read.format("rlite")` reads goes through a Python process, entry by entry; here that is only what is in no
whole block (reading/native.py). The rows are the same, in no order that could be relied on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.pipeline.catalog import catalog, samples
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.reading import native
from rlite_pubsub.pipeline.reading.offsets import extents, windows
from rlite_pubsub.pipeline.reading.planning import Window
from rlite_pubsub.pipeline.schema import schema_of, wanted
from rlite_pubsub.pipeline.spark.interpreter import source_is_there

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

SHA256, MANIFEST = "sha256", "manifest"
_STRICT = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "recursiveFileLookup": "true",
    "parquet.page.verify-checksum.enabled": "true",
}
"""A file that is gone or damaged is an error whatever the session says, and a folder `x=1` is no column."""


def read_topic(
    spark: SparkSession,
    subscribe: str | None = None,
    *,
    schema: str | StructType | None = None,
    verify: str = SHA256,
    **options: object,
) -> DataFrame:
    """The entries that there are now, as `spark.read.format("rlite")` with these options and this schema has them.

    `verify`: `sha256` proves the bytes of each file, now; `manifest` trusts that they are what the store says.
    Raises OptionRefused, DataLoss, and ColdError where a block is damaged."""
    if verify not in (SHA256, MANIFEST):
        raise OptionRefused(f"verify: is {SHA256} or {MANIFEST}, not {verify!r}")
    said = {name: _text(value) for name, value in options.items() if value is not None}
    if subscribe is not None:
        said["subscribe"] = subscribe
    known = SourceOptions.of(said).for_reading()
    found = catalog(known)
    shape = _schema(spark, schema) or schema_of(known, samples(found) if known.infer_fields else ())
    columns = wanted(shape, known)
    asked = windows(found, known, extents(found))
    whole = [one for window in asked for one in native.whole_blocks(found, window)]
    if verify == SHA256:
        whole = native.proved(spark, whole)
    from rlite_pubsub.pipeline.reading.expressions import RAW, made

    rest = [one for window in asked for one in native.rest_of(found, window, whole)]
    parts = [_files(spark, RAW, whole)] if whole else []
    if rest or not whole:
        parts.append(_others(spark, said, rest))
    frame = parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])
    frame, found_columns = made(frame, columns, is_permissive=known.is_permissive)
    return frame.select(*[
        column.alias(one.name, metadata=one.metadata or {})
        for one, column in zip(shape.fields, found_columns, strict=True)
    ])


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _schema(spark: SparkSession, schema: str | StructType | None) -> StructType | None:
    if not isinstance(schema, str):
        return schema
    return spark.createDataFrame([], schema).schema


def _files(spark: SparkSession, raw: str, whole: list[native.WholeBlock]) -> DataFrame:
    return spark.read.schema(raw).options(**_STRICT).parquet(*[f"file:{one.file}" for one in whole])


def _others(spark: SparkSession, said: dict[str, str], rest: list[Window]) -> DataFrame:
    """Return the rest by the source, which is told what to read id by id: it plans later, when there may be more."""
    passed = {
        name: value
        for name, value in said.items()
        if name.lower() in ("url", "username", "passwordfile", "coldpath", "minpartitions", "failondataloss")
    }
    columns = "topic string, ms long, seq long, headers array<struct<name: binary, value: binary>>"
    reader: DataFrameReader = spark.read.format("rlite").schema(columns).options(**passed)
    with source_is_there():
        frame = reader.option("ranges", native.ranges_text(rest)).load()
    return frame.withColumnRenamed("headers", "fields")
