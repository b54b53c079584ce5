"""A program that reads a topic into Spark, and beside it, in turns, what that is compared with.

    spark_reading.py URL TOPIC ENTRIES TIMES [COLD]

With COLD, the folder of a cold store: its entries in blocks by read_topic, from the plan and the proof of all bytes on,
and by the source, and the files of these blocks by Spark itself, all with the columns of the source and with those of
the files. Without: all of its entries, and paging with redis-py and hiredis. Says how long each took each time.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis
from redis.utils import HIREDIS_AVAILABLE

from rlite_pubsub.pipeline import read_topic, session
from rlite_pubsub.pipeline.cold_topic import cold_topic

WARM_UPS = 4
"""So often it has to be done until the JVM has compiled it."""

url, topic, entries, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
cold_folder = Path(sys.argv[5]) if len(sys.argv) > 5 else None
client = redis.Redis.from_url(url)
cold = cold_topic(client, topic.encode())
spark = session.start("bench")
source = spark.read.format("rlite").option("url", url).option("subscribe", topic).option("includeHeaders", "false")


def written(frame) -> None:  # type: ignore[no-untyped-def]
    """All of it has been made, row by row, and goes nowhere."""
    frame.write.format("noop").mode("overwrite").save()


def paged(count: int) -> None:
    after, there = b"-", 0
    while page := client.xrange(topic, after, "+", count=count):
        there += len(page)
        after = b"(" + page[-1][0]  # type: ignore[operator]
    if there != entries:
        sys.exit(f"{there} entries were paged, and not {entries}")


works: dict[str, Callable[[], None]]
if cold_folder is not None:
    ms, seq = cold.sealed_to
    upto = json.dumps({topic: f"{ms}-{seq}"})
    frame = source.option("endingOffsets", upto).load()
    files = spark.read.parquet(*[str(cold_folder / block.path) for block in cold.blocks])
    alike = files.selectExpr(
        "topic",
        "concat(ms, '-', seq) id",
        "ms",
        "seq",
        "timestamp_millis(ms) timestamp",
        "get(filter(fields, one -> one.name = X'6b6579'), 0).value key",
        "if(size(fields) = 1, fields[0].value, get(filter(fields, one -> one.name = X'76616c7565'), 0).value) value",
    )
    if files.count() != entries or frame.exceptAll(alike).limit(1).count():
        sys.exit("the files have other entries than the source says")
    by_topic = read_topic(spark, topic, includeHeaders=False, url=url, endingOffsets=upto)
    if by_topic.count() != entries or by_topic.exceptAll(alike).limit(1).count():
        sys.exit("the files have other entries than read_topic says")
    columns = "topic string, ms long, seq long, headers array<struct<name: binary, value: binary>>"
    bare = source.option("endingOffsets", upto).option("includeHeaders", "true").schema(columns).load()
    read = {"url": url, "endingOffsets": upto}
    works = {
        "topic": lambda: written(read_topic(spark, topic, includeHeaders=False, **read)),
        "topic as the files": lambda: written(read_topic(spark, topic, schema=columns, **read)),
        "source": lambda: written(frame),
        "files as the source": lambda: written(alike),
        "source as the files": lambda: written(bare),
        "files": lambda: written(files),
    }
else:
    if not HIREDIS_AVAILABLE:
        sys.exit("redis-py has no hiredis")
    frame = source.load()
    works = {"source": lambda: written(frame), "1000": lambda: paged(1000), "10000": lambda: paged(10_000)}
there = frame.selectExpr("count(id)", "sum(length(value))").first()
if there is None or there[0] != entries:
    sys.exit(f"the source has {there} entries, and not {entries}")
for _ in range(min(WARM_UPS, times)):
    for work in works.values():
        work()
print(json.dumps("ready"), flush=True)
for number in range(times):
    took = {}
    for name in works if number % 2 else reversed(works):
        start = time.perf_counter()
        works[name]()
        took[name] = time.perf_counter() - start
    print(json.dumps(took), flush=True)
session.stop(spark)
