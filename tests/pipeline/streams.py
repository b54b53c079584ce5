"""Streams of topics, run until there is nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession


def stream(spark: SparkSession, url: str, **options: object) -> DataFrame:
    """A stream of the source."""
    reader = spark.readStream.format("rlite").option("url", url)
    for name, value in options.items():
        reader = reader.option(name, value)  # type: ignore[arg-type]
    return reader.load()


def drained(spark: SparkSession, url: str, checkpoint: Path, **options: object) -> list[list[int]]:
    """The values of each batch that there is. Raises what ends the query."""
    batches: list[list[int]] = []

    def take(frame: DataFrame, _: int) -> None:
        batches.append([int(bytes(row.value)) for row in frame.select("value").collect()])

    query = (
        stream(spark, url, **options)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return batches


def copy(
    spark: SparkSession, url: str, checkpoint: Path, source: str, target: str, columns: str = "key, value", **more: Any
) -> None:
    """One topic appended to another one by the sink; raises what ends the query."""
    query = (
        stream(spark, url, subscribe=source, startingOffsets="earliest", **more)
        .selectExpr(*columns.split(", "))
        .writeStream.format("rlite")
        .option("url", url)
        .option("topic", target)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    finally:
        query.stop()
