"""A driver for a cluster: python cluster_driver.py <master> <url> <folder>. It reads a topic, and copies it."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def main(master: str, url: str, folder: str) -> None:
    builder = SparkSession.builder.master(master).appName("cluster")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.local.dir": folder,
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.cores.max": "2",
    }.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    frame = spark.read.format("rlite").option("url", url).option("subscribe", "t").option("minPartitions", "6").load()
    counted = frame.agg(F.count("*"), F.sum(F.col("value").cast("string").cast("long")), F.countDistinct("id"))
    count, total, ids = counted.collect()[0]
    frame.select("value").write.format("rlite").option("url", url).option("topic", "copy").mode("append").save()
    print("RESULT", count, total, ids)
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
