"""A program that streams: a topic into nothing, or files into a topic, exactly once.

    spark_streaming.py URL TOPIC ENTRIES TIMES FOLDER [BATCHES]

With BATCHES the topic is read in so many; without, it is written to. Says how long each query took, from its start to
its end.
"""

import json
import sys
import time
from pathlib import Path

import redis

from rlite_pubsub.pipeline import session

FILES = 4
PAYLOAD_BYTES = 100

url, topic, entries, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
folder = Path(sys.argv[5])
batches = int(sys.argv[6]) if len(sys.argv) > 6 else 0
client = redis.Redis.from_url(url)
spark = session.start("bench")
if batches:
    stream = (
        spark.readStream.format("rlite")
        .option("url", url)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "false")
        .option("maxOffsetsPerTrigger", -(-entries // batches))
        .load()
    )
else:
    value = f"cast(rpad(cast(id as string), {PAYLOAD_BYTES}, 'p') as binary) value"
    made = spark.range(0, entries, 1, FILES).selectExpr(value)
    made.write.parquet(str(folder / "rows"))
    stream = spark.readStream.schema(made.schema).parquet(str(folder / "rows"))


def run(number: int) -> float:
    """How long one query took that goes through all there is."""
    writer = stream.writeStream.option("checkpointLocation", str(folder / f"checkpoint-{number}"))
    if batches:
        writer = writer.format("noop")
    else:
        writer = writer.format("rlite").option("url", url).option("topic", f"{topic}-{number}")
    start = time.perf_counter()
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    took = time.perf_counter() - start
    rows = sum(one["numInputRows"] for one in query.recentProgress)
    there = entries if batches else client.xlen(f"{topic}-{number}")
    if not rows == there == entries:
        sys.exit(f"{rows} rows were read, {there} are there, and {entries} were due")
    if not batches:
        client.delete(f"{topic}-{number}")
    return took


run(0)
print(json.dumps("ready"), flush=True)
for number in range(times):
    print(json.dumps(run(number + 1)), flush=True)
session.stop(spark)
