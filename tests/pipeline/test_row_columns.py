"""Any frame becomes entries: a column a field, and what was read from a topic is written as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.pipeline.streams import stream
from tests.pipeline.test_fields import ORDERS, add
from tests.pipeline.test_reader import load
from tests.pipeline.test_writer import fields, save
from tests.pipeline.xrange import raw


def test_a_column_is_a_field_and_null_is_none(spark: SparkSession, client: redis.Redis, url: str) -> None:
    frame = spark.sql("""
        select 'tea' item, 3.5d price, 7L id, true hot, date'2026-11-19' day,
               timestamp'2026-11-19 10:00:00.5' timestamp, 12.30 cost, array(1, 2) numbers,
               named_struct('a', 1, 'b', x'ff') parts, map('k', 1.5d) more,
               x'ff00' raw, cast(null as string) nothing, 'x' topic
    """)
    save(frame, url, topic="t")
    assert fields(client, "t") == [[
        b"item", b"tea", b"price", b"3.5", b"id", b"7", b"hot", b"true", b"day", b"2026-11-19",
        b"timestamp", b"2026-11-19T10:00:00.500000Z", b"cost", b"12.30", b"numbers", b"[1, 2]",
        b"parts", b'{"a": 1, "b": {"base64": "/w=="}}', b"more", b'{"k": 1.5}', b"raw", b"\xff\x00", b"topic", b"x",
    ]]  # fmt: skip


def test_what_is_written_is_read_again(spark: SparkSession, client: redis.Redis, url: str) -> None:
    frame = spark.sql("select id number, id / 4 quarter, timestamp_seconds(id) at, id % 2 = 0 even from range(100)")
    save(frame.coalesce(1), url, topic="t")
    schema = "number long, quarter double, at timestamp, even boolean"
    again = spark.read.format("rlite").option("url", url).option("subscribe", "t").schema(schema).load()
    assert again.collect() == frame.collect()


def test_a_topic_is_copied_fields_and_all_by_a_batch_and_by_a_stream(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    add(client, "orders", *ORDERS, {"value": "v", "more": "m"})
    save(load(spark, url, subscribe="orders"), url, topic="batch")
    query = (
        stream(spark, url, subscribe="orders", startingOffsets="earliest")
        .writeStream.format("rlite")
        .option("url", url)
        .option("topic", "stream")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    save(load(spark, url, subscribe="orders", inferFields=True).coalesce(1), url, topic="named")
    assert raw(client, "batch") == raw(client, "stream") == raw(client, "orders")
    assert sorted(map(_pairs, raw(client, "named"))) == sorted(map(_pairs, raw(client, "orders")))


def _pairs(entry: Any) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    entry_id, words = entry
    return entry_id, sorted(zip(words[::2], words[1::2], strict=True))


def test_what_was_changed_is_written_as_it_is_now(spark: SparkSession, client: redis.Redis, url: str) -> None:
    add(client, "t", {"value": "a", "kind": "k"}, {"kind": "l", "value": "b"})
    frame = load(spark, url, subscribe="t")
    changed = frame.withColumn("value", F.upper(F.col("value").cast("string"))).withColumn("seen", F.lit(1))
    save(changed.coalesce(1), url, topic="u")
    assert fields(client, "u") == [
        [b"kind", b"k", b"value", b"A", b"seen", b"1"], [b"kind", b"l", b"value", b"B", b"seen", b"1"],
    ]  # fmt: skip
    assert [entry for entry, _ in raw(client, "u")] == [b"1-0", b"2-0"]
    counts = frame.groupBy("topic", "ms").count()
    save(counts.where("ms = 1"), url, topic="counts")
    assert fields(client, "counts") == [[b"topic", b"t", b"ms", b"1", b"count", b"1"]]


def test_a_field_with_a_column_of_another_name_has_its_own_name_again(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    add(client, "t", {"id": "a7", "n": "1"})
    save(load(spark, url, subscribe="t", fields="id as order, n int").withColumn("n", F.col("n") + 1), url, topic="u")
    assert raw(client, "u") == [[b"1-0", [b"id", b"a7", b"n", b"2"]]]


def test_a_row_of_nulls_is_refused(spark: SparkSession, client: redis.Redis, url: str) -> None:
    with pytest.raises(PySparkException, match="all columns of a row are null"):
        save(spark.sql("select cast(null as int) a, cast(null as string) b"), url, topic="t")
    assert client.exists("t") == 0
