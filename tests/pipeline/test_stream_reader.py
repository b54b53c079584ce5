"""Streaming reads by real Spark: offsets, checkpoints, limits, and what is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis
from patience import until
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.pipeline.streams import drained, stream
from tests.pipeline.test_reader import fill

ALL = {"startingOffsets": "earliest"}


def test_a_restarted_query_goes_on_where_its_checkpoint_is_whatever_options_say(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 100)
    assert drained(spark, url, tmp_path, subscribe="t", **ALL) == [list(range(1, 101))]
    assert drained(spark, url, tmp_path, subscribe="t", **ALL) == []
    fill(client, "t", 50, first=101)
    assert drained(spark, url, tmp_path, subscribe="t", startingOffsets="latest") == [list(range(101, 151))]


def test_a_batch_has_no_more_entries_than_it_may_and_each_topic_has_its_share(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "a", 300)
    fill(client, "b", 30, first=1001)
    client.xdel("a", "150-0")
    batches = drained(spark, url, tmp_path, subscribe="a,b", maxOffsetsPerTrigger=100, **ALL)
    assert [len(batch) for batch in batches] == [100, 100, 100, 29]
    assert sorted(sum(batches, [])) == [*range(1, 150), *range(151, 301), *range(1001, 1031)]
    assert all(any(value > 1000 for value in batch) for batch in batches[:2])


def test_entries_that_come_while_available_now_runs_are_for_the_next_run(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 20)
    seen: list[int] = []

    def take(frame: DataFrame, batch: int) -> None:
        seen.extend(int(bytes(row.value)) for row in frame.select("value").collect())
        fill(client, "t", 10, first=1000 * (batch + 1))

    query = (
        stream(spark, url, subscribe="t", maxOffsetsPerTrigger=10, **ALL)
        .writeStream.foreachBatch(take)
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert seen == list(range(1, 21))


def test_a_running_query_finds_new_topics_and_new_entries(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t1", 5)
    seen: list[int] = []

    def take(frame: DataFrame, batch: int) -> None:
        seen.extend(int(bytes(row.value)) for row in frame.select("value").collect())

    frame = stream(spark, url, subscribePattern="t.")
    query = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).start()
    try:
        until(lambda: (tmp_path / "commits" / "0").exists() or query.exception(), "the first batch")
        fill(client, "t1", 5, first=101)
        fill(client, "t2", 5, first=201)
        until(lambda: len(seen) == 10 or query.exception(), "ten entries")
        assert query.exception() is None
        assert sorted(seen) == [*range(101, 106), *range(201, 206)]  # it began at the latest, and with the new one
    finally:
        query.stop()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": '{"t": "90-0"}'}, list(range(91, 101))),
        ({"startingTimestamp": 95}, list(range(95, 101))),
        ({}, []),
    ],
)
def test_a_new_query_begins_where_its_options_say(
    spark: SparkSession,
    client: redis.Redis,
    url: str,
    tmp_path: Path,
    options: dict[str, object],
    expected: list[int],
) -> None:
    fill(client, "t", 100)
    assert sum(drained(spark, url, tmp_path, subscribe="t", **options), []) == expected


def test_entries_that_were_trimmed_behind_the_checkpoint_are_an_error_that_names_them(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 100)
    drained(spark, url, tmp_path, subscribe="t", **ALL)
    fill(client, "t", 100, first=101)
    client.xtrim("t", minid="151-0", approximate=False)
    with pytest.raises(PySparkException, match="topic 't': entries after 100-0, up to 150-0, were trimmed away"):
        drained(spark, url, tmp_path, subscribe="t")
    assert drained(spark, url, tmp_path, subscribe="t", failOnDataLoss="false") == [list(range(151, 201))]


def test_a_topic_that_was_deleted_or_made_anew_is_an_error(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 100)
    drained(spark, url, tmp_path, subscribePattern="t", **ALL)
    client.delete("t")
    with pytest.raises(PySparkException, match="no such topic any more, and 100-0 of it was done"):
        drained(spark, url, tmp_path, subscribePattern="t")
    fill(client, "t", 10)
    with pytest.raises(PySparkException, match="ends at 10-0, but 100-0 is done"):
        drained(spark, url, tmp_path, subscribePattern="t")
    assert drained(spark, url, tmp_path, subscribePattern="t", failOnDataLoss="false") == [list(range(1, 11))]


def test_options_of_a_batch_are_refused(spark: SparkSession, url: str, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="endingOffsets: is not for a stream"):
        drained(spark, url, tmp_path, subscribe="t", endingOffsets="latest")
