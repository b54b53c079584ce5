"""A program that compacts topics, one after the other, and beside it concatenates the same files with pyarrow.

    spark_compaction.py URL FOLDER TOPIC TOPIC...

FOLDER is that of the cold store. The first topic is not counted. Says how many blocks and entries there were, how many
blocks there are now, and how long both took.
"""

import json
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import redis

from rlite_pubsub.pipeline import session
from rlite_pubsub.pipeline.cold_topic import cold_topic
from rlite_pubsub.pipeline.jobs import compact

url, folder, topics = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
client = redis.Redis.from_url(url)
spark = session.start("bench")


def concatenated(files: list[str]) -> float:
    start = time.perf_counter()
    table = pa.concat_tables([pq.read_table(file) for file in files])
    pq.write_table(table, folder / "concatenated", compression="zstd", compression_level=3)
    return time.perf_counter() - start


def compacted(topic: str) -> float:
    start = time.perf_counter()
    compact.run(spark, compact.Compact(url=url, topics=(topic,), target_bytes=1 << 40))
    return time.perf_counter() - start


for number, topic in enumerate(topics):
    before = cold_topic(client, topic.encode())
    files = [str(folder / block.path) for block in before.blocks]
    if number % 2:
        plain, ours = concatenated(files), compacted(topic)
    else:
        ours, plain = compacted(topic), concatenated(files)
    after = cold_topic(client, topic.encode())
    entries = sum(block.count for block in before.blocks)
    if sum(block.count for block in after.blocks) != entries or set(before.blocks) & set(after.blocks):
        sys.exit(f"of {entries} entries in {len(files)} blocks not all are in {len(after.blocks)} new ones")
    if number:
        said = {"blocks": len(files), "left": len(after.blocks), "entries": entries, "compact": ours, "pyarrow": plain}
        print(json.dumps(said), flush=True)
    else:
        print(json.dumps("ready"), flush=True)
session.stop(spark)
