"""Batch reads by real Spark, held against XRANGE."""

from __future__ import annotations

import signal
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
from server_process import Serve, ServerProcess

from rlite_pubsub.pipeline import read_topic
from rlite_pubsub.pipeline.errors import TopicMissing
from tests.pipeline.xrange import of_spark, raw, rows


def load(spark: SparkSession, url: str, **options: object) -> DataFrame:
    reader = spark.read.format("rlite").option("url", url)
    for name, value in options.items():
        reader = reader.option(name, value)  # type: ignore[arg-type]
    return reader.load()


def fill(client: redis.Redis, topic: str, count: int, first: int = 1) -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(first, first + count):
        pipeline.xadd(topic, {"value": b"%d" % number}, id=f"{number}-0")
    pipeline.execute()


def values(frame: DataFrame) -> list[int]:
    return [int(bytes(row.value)) for row in frame.select("value").collect()]


FIELDS = st.lists(
    st.tuples(st.sampled_from([b"key", b"value", b"", b"\xff\r\n$3"]) | st.binary(max_size=40), st.binary(max_size=99)),
    min_size=1,
    max_size=5,
)
HALF = st.integers(0, 2**64 - 1) | st.integers(0, 5)


@hypothesis_settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.dictionaries(st.tuples(HALF, HALF).filter(any), FIELDS, min_size=1, max_size=60), st.integers(1, 4))
def test_any_entry_is_read_byte_for_byte(
    spark: SparkSession, client: redis.Redis, url: str, table: dict[Any, Any], tasks: int
) -> None:
    client.flushall()
    for (ms, seq), fields in sorted(table.items()):
        client.execute_command("XADD", "t", f"{ms}-{seq}", *[word for pair in fields for word in pair])
    frame = load(spark, url, subscribe="t", includeHeaders=True, minPartitions=tasks)
    assert [of_spark(row) for row in frame.collect()] == rows(client, "t")


def test_the_same_queries_over_the_source_and_over_xrange_agree(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    fill(client, "a", 3000)
    fill(client, "b", 500, first=2000)
    client.xdel("a", "7-0", "2999-0")
    every = rows(client, "a") + rows(client, "b")
    frame = load(spark, url, subscribePattern="[ab]", minPartitions=4)
    queries: list[tuple[str, Any]] = [
        ("topic = 'a'", lambda row: row.topic == "a"),
        ("topic in ('b', 'c')", lambda row: row.topic in "bc"),
        ("id = '2100-0'", lambda row: row.id == "2100-0"),
        ("id in ('1-0', '2100-0', '7-0', 'x')", lambda row: row.id in ("1-0", "2100-0")),
        ("id > '30'", lambda row: row.id > "30"),
        ("ms > 100 and ms <= 2050", lambda row: 100 < row.ms <= 2050),
        ("ms = 100", lambda row: row.ms == 100),
        ("ms < 100 or ms > 2990", lambda row: row.ms < 100 or row.ms > 2990),
        ("not ms < 2400", lambda row: row.ms >= 2400),
        ("seq = 0 and ms < 10", lambda row: row.ms < 10),
        ("seq = 1", lambda row: False),
        ("timestamp >= '1970-01-01 00:00:02.4' and timestamp < '1970-01-01 00:00:02.41'",
         lambda row: 2400 <= row.ms < 2410),
        ("timestamp > '1970-01-01 00:00:02.400500' and ms <= 2402", lambda row: 2401 <= row.ms <= 2402),
        ("ms > 5 and ms < 5", lambda row: False),
    ]  # fmt: skip
    for text, keeps in queries:
        wanted = sorted((row.topic, row.ms) for row in every if keeps(row))
        found = sorted((row.topic, row.ms) for row in frame.where(text).select("topic", "ms").collect())
        assert found == wanted, text
    numbers = F.col("value").cast("string").cast("long")
    grouped = frame.groupBy("topic").agg(F.count("*").alias("n"), F.sum(numbers).alias("total")).collect()
    sums = {row.topic: (row.n, row.total) for row in grouped}
    assert sums == {
        topic: (len(them), sum(int(row.value or b"") for row in them))
        for topic in "ab"
        for them in [[row for row in every if row.topic == topic]]
    }


@pytest.mark.parametrize("is_pushing", ["true", "false"])
def test_a_frame_has_the_same_entries_however_often_and_however_it_is_used(
    spark: SparkSession, client: redis.Redis, url: str, is_pushing: str
) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", is_pushing)
    try:
        fill(client, "t", 1000)
        frame = load(spark, url, subscribe="t")
        assert frame.where("ms <= 10").union(frame.where("ms > 995")).count() == 15
        fill(client, "t", 10, first=1001)
        assert frame.where("ms >= 0").count() == frame.count() == frame.where("seq = 0").count() == 1000
        client.xtrim("t", minid="11-0", approximate=False)
        for one in (frame, frame.where("ms > 0")):
            with pytest.raises(PySparkException, match="topic 't': entries .* up to 10-0|it was trimmed up to 10-0"):
                one.collect()
        client.delete("t")
        with pytest.raises(PySparkException, match="topic 't': .*deleted"):
            frame.where("ms > 500").collect()
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


@pytest.mark.parametrize(("text", "found"), [("ms < 100", [1, 2]), ("ms < 0", [2]), ("ms >= 5", [1])])
def test_filters_are_right_beside_ids_whose_columns_are_negative(
    spark: SparkSession, client: redis.Redis, url: str, text: str, found: list[int]
) -> None:
    client.xadd("t", {"value": "1"}, id="5-0")
    client.xadd("t", {"value": "2"}, id=f"{2**63 + 7}-0")
    assert values(load(spark, url, subscribe="t").where(text)) == found


@pytest.mark.parametrize("tasks", [1, 3, 7, 50])
def test_partitions_have_equal_counts_and_all_entries(
    spark: SparkSession, client: redis.Redis, url: str, tasks: int
) -> None:
    fill(client, "t", 70)
    frame = load(spark, url, subscribe="t", minPartitions=tasks)
    counts = [row["count"] for row in frame.groupBy(F.spark_partition_id()).count().collect()]
    assert sum(counts) == 70
    assert len(counts) >= tasks
    assert max(counts) - min(counts) <= -(-70 // tasks)
    assert values(frame) == list(range(1, 71))


def test_many_small_topics_share_tasks(spark: SparkSession, client: redis.Redis, url: str) -> None:
    for number in range(50):
        fill(client, f"t{number}", 3)
    frame = load(spark, url, subscribePattern="t[0-9]+")
    assert frame.rdd.getNumPartitions() == 1
    assert frame.count() == 150


@pytest.mark.parametrize(
    ("options", "first", "last"),
    [
        ({}, 1, 100),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, 1, 100),
        ({"startingOffsets": '{"t": "10-0"}'}, 11, 100),
        ({"startingOffsets": '{"t": "earliest"}', "endingOffsets": '{"t": "20-0"}'}, 1, 20),
        ({"startingOffsets": '{"t": "10-0"}', "endingOffsets": '{"t": "latest"}'}, 11, 100),
        ({"startingTimestamp": 10, "endingTimestamp": 20}, 10, 19),
        ({"startingTimestamp": 0, "endingTimestamp": 2**62}, 1, 100),
        ({"startingOffsets": '{"t": "20-0"}', "endingOffsets": '{"t": "20-0"}'}, 1, 0),
    ],
)
def test_a_read_goes_on_behind_one_offset_up_to_and_with_the_other(
    spark: SparkSession, client: redis.Redis, url: str, options: dict[str, object], first: int, last: int
) -> None:
    fill(client, "t", 100)
    assert values(load(spark, url, subscribe="t", **options)) == list(range(first, last + 1))


def test_a_topic_that_is_not_there_is_an_error_that_names_it_unless_it_may_be_missing(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    fill(client, "t", 3)
    for options in ({}, {"startingTimestamp": "24h"}, {"endingOffsets": '{"nothing": "9-0"}'}):
        with pytest.raises(PySparkException, match="there is no topic 'nothing'; allowMissingTopic=true"):
            load(spark, url, subscribe="t,nothing", **options).collect()
    with pytest.raises(TopicMissing, match="there is no topic 'nothing'"):
        read_topic(spark, "t,nothing", url=url)
    assert values(load(spark, url, subscribe="t,nothing", allowMissingTopic=True)) == [1, 2, 3]
    assert read_topic(spark, "nothing", url=url, allowMissingTopic=True).collect() == []
    assert load(spark, url, subscribePattern="none.*").collect() == []


def test_a_schema_of_the_users_says_which_columns_are_made(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    fill(client, "t", 3)
    reader = spark.read.format("rlite").option("url", url).option("subscribe", "t")
    assert [tuple(row) for row in reader.schema("value binary, id string").load().collect()] == [
        (b"1", "1-0"), (b"2", "2-0"), (b"3", "3-0"),
    ]  # fmt: skip
    with pytest.raises(PySparkException, match="column 'list': a field can't be read as array<int>"):
        reader.schema("list array<int>").load().collect()
    with pytest.raises(PySparkException, match="column 'ms' is bigint, not int"):
        reader.schema("ms int").load().collect()


def test_entries_that_come_after_the_plan_are_not_in_it(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "t", 10)
    frame = load(spark, url, subscribe="t")
    assert frame.rdd.getNumPartitions() == 1  # it is planned
    fill(client, "t", 10, first=11)
    assert frame.count() == 10
    assert load(spark, url, subscribe="t").count() == 20


def test_entries_trimmed_between_plan_and_read_are_an_error_that_names_them(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    fill(client, "t", 100)
    strict, loose = (load(spark, url, subscribe="t", failOnDataLoss=flag) for flag in ("true", "false"))
    assert strict.rdd.getNumPartitions() == loose.rdd.getNumPartitions() == 1
    client.xtrim("t", minid="51-0", approximate=False)
    with pytest.raises(PySparkException, match="topic 't': entries of t from .* are gone: it was trimmed up to 50-0"):
        strict.collect()
    assert values(loose) == list(range(51, 101))
    assert values(load(spark, url, subscribe="t")) == list(range(51, 101))  # a new plan begins with what there is


def test_offsets_before_what_was_trimmed_are_an_error(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "t", 100)
    client.xtrim("t", minid="51-0", approximate=False)
    with pytest.raises(PySparkException, match="after 10-0, up to 50-0, were trimmed away"):
        load(spark, url, subscribe="t", startingOffsets='{"t": "10-0"}').collect()
    loose = load(spark, url, subscribe="t", startingOffsets='{"t": "10-0"}', failOnDataLoss="false")
    assert values(loose) == list(range(51, 101))


def test_a_deleted_entry_is_no_data_loss(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "t", 10)
    client.xdel("t", "1-0", "5-0")
    assert values(load(spark, url, subscribe="t")) == [2, 3, 4, 6, 7, 8, 9, 10]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"subscribe": "t", "startingOfsets": "latest"}, "unknown option 'startingofsets'"),
        ({}, "one of subscribe and subscribePattern"),
        ({"subscribe": "t", "subscribePattern": "t"}, "one of subscribe and subscribePattern"),
        ({"subscribe": "t", "startingOffsets": "10"}, "startingOffsets: is earliest, latest or"),
        ({"subscribe": "t", "startingOffsets": '{"t": "10"}'}, "'10' is not an id"),
        ({"subscribe": "t", "startingOffsets": '{"u": "1-0"}'}, "are not subscribed to"),
        ({"subscribe": "t", "startingOffsets": "latest"}, "latest has no meaning for a batch"),
        ({"subscribe": "t", "minPartitions": "0"}, "minPartitions: is a number from 1 on"),
        ({"subscribe": "t", "failOnDataLoss": "maybe"}, "failOnDataLoss: is true or false"),
        ({"subscribePattern": "("}, "is not a regular expression"),
        ({"subscribe": "t", "maxOffsetsPerTrigger": "5"}, "is not for a batch"),
        ({"subscribe": "t", "topic": "x"}, "topic: is not for reading"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    spark: SparkSession, url: str, options: dict[str, str], told: str
) -> None:
    with pytest.raises(PySparkException, match=told.replace("(", r"\(")):
        load(spark, url, **options).collect()


def test_no_secret_is_in_plans_and_errors(spark: SparkSession, serve: Serve, tmp_path: Path) -> None:
    server = serve("--requirepass", "s3cret")
    password = tmp_path / "password"
    password.write_text("s3cret\n")
    with redis.Redis(port=server.port, password="s3cret") as client:
        fill(client, "t", 3)
    by_file = load(spark, f"redis://127.0.0.1:{server.port}/0", subscribe="t", passwordFile=str(password))
    in_url = load(spark, f"redis://:s3cret@127.0.0.1:{server.port}/0", subscribe="t")
    assert values(by_file) == values(in_url) == [1, 2, 3]
    plan = in_url._jdf.queryExecution().toString()
    assert "s3cret" not in plan and "rlite" in plan
    with pytest.raises(PySparkException) as refused:
        load(spark, f"redis://:s3cret@127.0.0.1:{server.port}/0", subscribe="t", startingOffsets="x").collect()
    assert "s3cret" not in str(refused.value)
    with pytest.raises(PySparkException, match="passwordFile: can't read") as refused:
        load(spark, f"redis://127.0.0.1:{server.port}/0", subscribe="t", passwordFile="/nowhere").collect()


def test_connections_that_were_cut_between_queries_are_opened_anew(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    fill(client, "t", 10)
    frame = load(spark, url, subscribe="t")
    assert frame.count() == 10
    assert client.client_kill_filter(_type="normal", skipme=True) > 0
    assert frame.count() == load(spark, url, subscribe="t").count() == 10


def test_a_server_that_is_started_anew_goes_on_being_read(
    spark: SparkSession, serve: Serve, server: ServerProcess, client: redis.Redis, url: str
) -> None:
    fill(client, "t", 10)
    frame = load(spark, url, subscribe="t")
    assert frame.count() == 10
    server.end(signal.SIGKILL)
    serve(port=server.port)
    assert frame.count() == 10


def test_a_topic_of_any_name_is_read(spark: SparkSession, client: redis.Redis, url: str) -> None:
    client.execute_command("XADD", b"\xff:/x", "*", "value", "1")
    client.execute_command("XADD", "näme with,comma", "*", "value", "2")
    frame = load(spark, url, subscribePattern=".*")
    assert {(row.topic, bytes(row.value)) for row in frame.collect()} == {
        ("\\xff:/x", b"1"), ("näme with,comma", b"2"),
    }  # fmt: skip
    assert raw(client, "näme with,comma")
