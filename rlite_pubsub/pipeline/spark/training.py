"""A bit of everything that jobs do, so that the JVM loads the classes it will need (jvm_archive.py)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from rlite_pubsub.pipeline import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROWS = 2000


def train(spark: SparkSession, folder: Path) -> None:
    """Aggregates, a window, Parquet, Python in tasks, a stream."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    rows = spark.range(_ROWS).select(
        f.concat(f.lit("t"), (f.col("id") % 3).cast("string")).alias("topic"),
        f.col("id").alias("ms"),
        f.timestamp_millis("id").alias("timestamp"),
        f.array(f.struct(f.lit(b"name").alias("name"), f.col("id").cast("string").cast("binary").alias("value"))).alias(
            "headers"
        ),
    )
    path = str(folder / "rows")
    rows.write.partitionBy("topic").parquet(path)
    read = spark.read.parquet(path)
    gap = f.col("ms") - f.lag("ms").over(Window.partitionBy("topic").orderBy("ms"))
    read.withColumn("gap", gap).groupBy("topic", "gap").count().groupBy("topic").agg(
        f.sum("count"), f.percentile("gap", f.array(f.lit(0.5), f.lit(0.99)), f.col("count"))
    ).orderBy("topic").toArrow()
    read.where("ms > 10").toArrow()
    stream = spark.readStream.schema(read.schema).parquet(path)
    query = (
        stream.writeStream.foreachBatch(_counted)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.sparkContext.parallelize(range(4), 2).map(str).collect()


def _counted(frame: DataFrame, number: int) -> None:
    frame.count()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, session.session("training", "local[2]") as spark:
        train(spark, Path(folder))


if __name__ == "__main__":
    main()
