"""Batch and streaming writes by real Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.pipeline.streams import copy
from tests.pipeline.test_reader import FIELDS, fill, load
from tests.pipeline.xrange import raw


def save(frame: DataFrame, url: str, mode: str = "append", **options: object) -> None:
    writer = frame.write.format("rlite").option("url", url).mode(mode)
    for name, value in options.items():
        writer = writer.option(name, value)  # type: ignore[arg-type]
    writer.save()


def fields(client: redis.Redis, topic: str) -> list[list[bytes]]:
    return [words for _, words in raw(client, topic)]


@hypothesis_settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(FIELDS, min_size=1, max_size=60))
def test_any_entry_goes_from_the_server_through_spark_to_the_server_byte_for_byte(
    spark: SparkSession, client: redis.Redis, url: str, table: list[Any]
) -> None:
    client.flushall()
    for number, pairs in enumerate(table, 1):
        client.execute_command("XADD", "t", f"{number}-{number % 3}", *[word for pair in pairs for word in pair])
    frame = load(spark, url, subscribe="t", includeHeaders=True, minPartitions=3)
    save(frame.drop("topic", "id"), url, topic="new ids")
    save(frame, url, topic="same ids")
    assert fields(client, "new ids") == fields(client, "t")
    assert raw(client, "same ids") == raw(client, "t")


def test_rows_are_appended_in_order_partition_by_partition(spark: SparkSession, client: redis.Redis, url: str) -> None:
    frame = spark.range(0, 30_000, 1, 5).select(F.col("id").cast("string").alias("value"))
    save(frame, url, topic="t")
    assert fields(client, "t") == [[b"value", b"%d" % number] for number in range(30_000)]


def test_a_key_that_is_null_is_left_out(spark: SparkSession, client: redis.Redis, url: str) -> None:
    rows = [("a", b"1"), (None, b"2"), ("", b"")]
    save(spark.createDataFrame(rows, "key string, value binary").coalesce(1), url, topic="t")
    assert fields(client, "t") == [[b"key", b"a", b"value", b"1"], [b"value", b"2"], [b"key", b"", b"value", b""]]


def test_rows_go_to_the_topics_that_their_column_names(spark: SparkSession, client: redis.Redis, url: str) -> None:
    frame = spark.range(0, 1000, 1, 3).selectExpr("concat('t', id % 3) as topic", "cast(id as string) as value")
    save(frame, url)
    for rest in range(3):
        assert fields(client, f"t{rest}") == [[b"value", b"%d" % number] for number in range(rest, 1000, 3)]


def test_a_write_without_rows_does_nothing(spark: SparkSession, client: redis.Redis, url: str) -> None:
    save(spark.createDataFrame([], "value string"), url, topic="t")
    assert client.exists("t") == 0


def test_large_rows_are_staged_in_pieces(spark: SparkSession, client: redis.Redis, url: str) -> None:
    frame = spark.range(0, 12, 1, 2).selectExpr("repeat(cast(id % 10 as string), 700000) as value")
    save(frame, url, topic="t")
    assert fields(client, "t") == [[b"value", b"%d" % (number % 10) * 700_000] for number in range(12)]


def test_a_failed_task_leaves_nothing_behind(spark: SparkSession, client: redis.Redis, url: str) -> None:
    frame = spark.range(0, 20_000, 1, 2).selectExpr("if(id < 19999, cast(id as string), null) as value")
    with pytest.raises(PySparkException, match="all columns of a row are null"):
        save(frame, url, topic="t", application="app", batch=1)
    assert client.exists("t") == 0
    assert client.execute_command("TOPIC.UNSTAGE", "app", 1) == 0


def test_a_batch_of_an_application_is_appended_once(spark: SparkSession, client: redis.Redis, url: str) -> None:
    frame = spark.createDataFrame([("1",)], "value string")
    for batch in (7, 7, 6, 8):
        save(frame, url, topic="t", application="app", batch=batch)
    assert client.xlen("t") == 2


def test_ids_that_are_not_above_the_last_one_are_an_error(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "t", 10)
    frame = spark.createDataFrame([("10-0", "x")], "id string, value string")
    with pytest.raises(PySparkException, match="equal or smaller than the target stream top item"):
        save(frame, url, topic="t", keepIds="true")
    with pytest.raises(PySparkException, match="column id: 'x' is not an id"):
        save(spark.createDataFrame([("x", "x")], "id string, value string"), url, topic="t", keepIds="true")
    assert client.xlen("t") == 10


@pytest.mark.parametrize(
    ("schema", "options", "told"),
    [
        ("value string", {}, "say the option topic"),
        ("a interval day to second", {"topic": "t"}, "column 'a': interval day to second can't be a field"),
        ("id long, value string", {"topic": "t", "keepIds": "true"}, "column 'id': is string, not bigint"),
        ("topic string", {}, "no column can be a field"),
        ("value string", {"topic": "t", "fields": "a"}, "fields: is not for writing"),
        ("value string", {"topic": "t", "application": "a"}, "needs batch"),
        ("value string", {"topic": "t", "batch": "1"}, "has no meaning without application"),
        ("value string", {"topic": "t", "topik": "u"}, "unknown option 'topik'"),
        ("value string", {"topic": "t", "subscribe": "u"}, "subscribe: is not for writing"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    spark: SparkSession, url: str, schema: str, options: dict[str, str], told: str
) -> None:
    with pytest.raises(PySparkException, match=told):
        save(spark.createDataFrame([], schema), url, **options)


def test_a_topic_is_not_overwritten(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "t", 1)
    with pytest.raises(PySparkException):
        save(spark.createDataFrame([("1",)], "value string"), url, "overwrite", topic="t")
    assert client.xlen("t") == 1


def test_a_stream_is_appended_once_over_restarts(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 100)
    copy(spark, url, tmp_path, "t", "u", maxOffsetsPerTrigger=30)
    fill(client, "t", 100, first=101)
    copy(spark, url, tmp_path, "t", "u")
    assert fields(client, "u") == fields(client, "t")


def test_a_batch_that_the_driver_does_not_know_to_be_committed_is_not_appended_twice(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 100)
    copy(spark, url, tmp_path, "t", "u", maxOffsetsPerTrigger=50)
    (tmp_path / "commits" / "1").unlink()  # as if the driver had died before it wrote it
    (tmp_path / "commits" / ".1.crc").unlink(missing_ok=True)
    copy(spark, url, tmp_path, "t", "u")
    assert fields(client, "u") == fields(client, "t")
