"""`read_topic` has the very rows of the source, though Spark reads most of them by itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from server_process import Serve, ServerProcess

from rlite_pubsub.cold.errors import BlockDamaged
from rlite_pubsub.pipeline import read_topic
from rlite_pubsub.pipeline.errors import DataLoss, OptionRefused, SourceMissing
from rlite_pubsub.pipeline.spark.interpreter import source_is_there
from tests.pipeline.cold_server import SMALL_BLOCKS, blocks, fill, wait_for_blocks
from tests.pipeline.test_reader import load

ODD: list[dict[bytes, bytes]] = [
    {b"key": b"k", b"value": b"v"},
    {b"a": b'x"y\\z', b"b": b"\n\x0b\x1f\t"},
    {b"a": b"\xff\x00", b"n\xe9\\": "ü€".encode()},
    {b"1": b"1", b"2": b"2", b"3": b"3", b"4": b"4", b"value": b"fifth", b"key": b"sixth"},
    {b"": b""},
    {b"type": b"t", b"n": b"1"},
    {b"type": b"t", b"body": b"\xfe"},
    {b"type": b"t", b"body": b"b"},
]


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve(*SMALL_BLOCKS)


def files(frame: DataFrame) -> int:
    """How many files Spark's own reader has."""
    return len(frame.inputFiles())


def path_of(client: redis.Redis, topic: str, number: int) -> str:
    told = blocks(client, topic)[number]
    known = told if isinstance(told, dict) else dict(zip(told[::2], told[1::2], strict=True))
    return str(known[b"path"].decode())


def ordered(frame: DataFrame) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def test_the_rows_are_those_of_the_source(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "t", 2000)
    pipe = client.pipeline(transaction=False)
    for number in range(1000):
        odd = ODD[number % len(ODD)]
        pipe.xadd("t", {**odd, b"filler": b"%40d" % number} if number % 3 else odd)
    pipe.xadd("t", {"last": "hot"}, id=f"{2**63}-{2**64 - 1}")
    pipe.execute()
    count = wait_for_blocks(client, "t", 10)
    every = [entry[0] for entry in client.xrange("t")]
    client.xdel("t", every[500], every[700], every[-3])
    client.xtrim("t", maxlen=2900, approximate=False)
    frame = read_topic(spark, "t", url=url)
    source = load(spark, url, subscribe="t")
    assert frame.schema == source.schema
    assert 5 < files(frame) <= count - 3  # one of them is trimmed, two have gaps
    assert ordered(frame) == ordered(source)
    since, until = int(every[600].split(b"-")[0]), f'{{"t": "{every[1500].decode()}"}}'
    for options in ({"startingTimestamp": since}, {"endingOffsets": until}):
        narrowed = read_topic(spark, "t", url=url, **options).select("id")
        assert files(narrowed) > 2
        assert ordered(narrowed) == ordered(load(spark, url, subscribe="t", **options).select("id"))
    folder = client.config_get("dir")["dir"]
    assert ordered(read_topic(spark, url=folder, subscribePattern="t").select("id")) == ordered(source.select("id"))
    cold = {"coldPath": f"{folder}/cold", "subscribe": "t"}
    alone = spark.read.format("rlite").options(**cold).load()
    history = read_topic(spark, **cold)
    assert files(history) >= count - 4 and ordered(history.select("id")) == ordered(alone.select("id"))


def test_fields_and_events_are_those_of_the_source(spark: SparkSession, client: redis.Redis, url: str) -> None:
    for number in range(1500):
        client.xadd("events", {**ODD[number % len(ODD)], "n": str(number), "x": "2.5" if number % 2 else "x" * 30})
    wait_for_blocks(client, "events", 3)
    frame = read_topic(spark, "events", url=url)
    assert files(frame) >= 3
    assert ordered(frame) == ordered(load(spark, url, subscribe="events"))
    asked = {"url": url, "fields": "n long, x double, 3 as three, key", "mode": "PERMISSIVE", "subscribe": "events"}
    assert ordered(read_topic(spark, **asked)) == ordered(spark.read.format("rlite").options(**asked).load())
    with pytest.raises(PySparkException, match="topic 'events': entry .*: column 'x': 'x+' is no double"):
        read_topic(spark, **asked | {"mode": "FAILFAST"}).collect()
    by_schema = read_topic(spark, "events", url=url, schema="n int, id string").where("n = 78").collect()
    assert len(by_schema) == 1


def test_a_damaged_file_is_an_error_before_spark_sees_it_and_one_that_is_gone_is_asked_for(
    spark: SparkSession, client: redis.Redis, server: ServerProcess, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 3000)
    wait_for_blocks(client, "t", 5)
    path = server.store_folder / "cold" / path_of(client, "t", 1)
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(BlockDamaged, match=path.name):
        read_topic(spark, "t", url=url)
    assert files(read_topic(spark, "t", url=url, verify="manifest")) >= 5
    with pytest.raises(Exception, match="FAILED_READ_FILE"):  # py4j's or Spark's own
        read_topic(spark, "t", url=url, verify="manifest").collect()
    path.unlink()
    gone = read_topic(spark, "t", url=url)  # the server cannot read it, either
    with pytest.raises(PySparkException, match=path.stem):
        gone.collect()
    with pytest.raises(OptionRefused, match="verify: is sha256 or manifest"):
        read_topic(spark, "t", url=url, verify="no")


def test_a_topic_under_a_new_name_is_read_under_it(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "old", 2000)
    wait_for_blocks(client, "old", 3)
    client.rename("old", "new")
    for frame in (load(spark, url, subscribe="new"), read_topic(spark, "new", url=url)):
        assert [tuple(row) for row in frame.groupBy("topic").count().collect()] == [("new", 2000)]


def test_what_was_trimmed_since_it_was_planned_is_an_error(spark: SparkSession, client: redis.Redis, url: str) -> None:
    fill(client, "t", 100)
    frame = read_topic(spark, "t", url=url)
    client.xtrim("t", maxlen=50, approximate=False)
    with pytest.raises(PySparkException, match=DataLoss.__name__):
        frame.collect()


def test_a_session_that_does_not_find_the_source_says_what_to_do_in_one_line(spark: SparkSession) -> None:
    with pytest.raises(SourceMissing) as failure, source_is_there():
        spark.read.format("rlite_that_is_not_there").load()
    assert "PYSPARK_PYTHON" in str(failure.value) and sys.executable in str(failure.value)
    assert "\n" not in str(failure.value)
