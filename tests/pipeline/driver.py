"""A driver as a process of its own, to be killed: it copies one topic to another by the exactly-once sink.

    python driver.py <url> <from> <to> <checkpoint> <entries per batch> <folder for what is temporary>
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def main(url: str, source: str, target: str, checkpoint: str, entries: str, folder: str) -> None:
    builder = SparkSession.builder.master("local[2,4]").appName("copy")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.local.dir": folder,
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder} -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.log.level": "ERROR",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    frame = (
        spark.readStream.format("rlite")
        .option("url", url)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", entries)
        .option("minPartitions", "3")
        .load()
    )
    query = (
        frame.select("value")
        .writeStream.format("rlite")
        .option("url", url)
        .option("topic", target)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sys.stdout.flush()
    os._exit(0)  # all is done and committed: nothing here needs a slow farewell


if __name__ == "__main__":
    main(*sys.argv[1:])
