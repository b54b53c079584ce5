"""Reads over the seam: blocks by the executors, the rest from the server, and nothing twice or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import redis
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from server_process import Serve, ServerProcess

from rlite_pubsub.pipeline.catalog import ServerCatalog
from rlite_pubsub.pipeline.errors import DataLoss
from rlite_pubsub.pipeline.reading import fetching
from rlite_pubsub.pipeline.reading.planning import plan
from rlite_pubsub.pipeline.topics import extent
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from tests.pipeline.cold_server import SMALL_BLOCKS, blocks, wait_for_blocks
from tests.pipeline.cold_server import fill as fill_shapes
from tests.pipeline.streams import drained
from tests.pipeline.test_reader import fill, load, values
from tests.pipeline.xrange import of_spark, rows


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve(*SMALL_BLOCKS)


def test_blocks_and_the_server_together_are_what_xrange_says(
    spark: SparkSession, client: redis.Redis, url: str
) -> None:
    fill_shapes(client, "t", 3000)
    wait_for_blocks(client, "t", 10)
    every = [entry[0] for entry in client.xrange("t")]
    client.xdel("t", *every[500:505], every[700], every[-2])
    client.xtrim("t", maxlen=2800, approximate=False)
    expected = rows(client, "t")
    for tasks in (1, 7):
        frame = load(spark, url, subscribe="t", includeHeaders=True, minPartitions=tasks)
        assert [of_spark(row) for row in frame.collect()] == expected


@pytest.mark.parametrize(("low", "high"), [(1, 3000), (150, 160), (2, 2999), (1000, 1900)])
def test_a_part_of_a_topic_is_read_from_the_blocks_that_hold_it(
    spark: SparkSession, client: redis.Redis, url: str, low: int, high: int
) -> None:
    fill(client, "t", 3000)
    wait_for_blocks(client, "t", 5)
    frame = load(spark, url, subscribe="t", startingTimestamp=low, endingTimestamp=high + 1, minPartitions=3)
    assert values(frame) == list(range(low, high + 1))


def test_what_was_planned_is_read_while_sealing_goes_on(client: redis.Redis) -> None:
    fill(client, "t", 3000)
    there = extent(client, b"t")
    assert there is not None
    partitions = plan(ServerCatalog(client), [(b"t", (0, 0), there.last)], 5)
    wait_for_blocks(client, "t", 10)  # between plan and read
    found = [
        ms
        for spans in partitions
        for span in spans
        for batch in fetching.entries(client, span, complete=True)
        for ms in batch.column("ms").to_pylist()
    ]
    assert found == list(range(1, 3001))


def test_a_block_that_is_gone_is_asked_of_the_server(client: redis.Redis, caplog: pytest.LogCaptureFixture) -> None:
    fill(client, "t", 3000)
    wait_for_blocks(client, "t", 5)
    (partition,) = plan(ServerCatalog(client), [(b"t", (0, 0), (3000, 0))], 1)
    span = partition[0]
    assert span.cold is not None
    elsewhere = span.cold._replace(info=replace(span.cold.info, path="t/1/nowhere.parquet"))
    moved = span._replace(cold=elsewhere)
    one, other = (
        [ms for batch in fetching.entries(client, each, complete=True) for ms in batch.column("ms").to_pylist()]
        for each in (span, moved)
    )
    assert one == other and one
    client.xtrim("t", minid=f"{one[-1]}-0", approximate=False)
    with pytest.raises(DataLoss, match="are gone"):
        list(fetching.entries(client, moved, complete=True))
    left = [ms for batch in fetching.entries(client, moved, complete=False) for ms in batch.column("ms").to_pylist()]
    assert left == one[-1:]
    assert "topic 't': entries of t from" in caplog.text and "It is skipped: failOnDataLoss is false" in caplog.text


def test_a_damaged_block_is_an_error_that_names_it(
    spark: SparkSession, serve: Serve, server: ServerProcess, client: redis.Redis, url: str
) -> None:
    fill(client, "t", 3000)
    wait_for_blocks(client, "t", 5)
    path = next((server.store_folder / "cold").rglob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[200] ^= 1
    path.write_bytes(content)
    with pytest.raises(PySparkException, match=path.stem):
        load(spark, url, subscribe="t").collect()


def test_the_place_of_the_blocks_may_be_said(
    spark: SparkSession, server: ServerProcess, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 3000)
    wait_for_blocks(client, "t", 5)
    moved = tmp_path / "moved"
    (server.store_folder / "cold").rename(moved)
    assert len(blocks(client, "t")) >= 5
    assert values(load(spark, url, subscribe="t", coldPath=str(moved))) == list(range(1, 3001))


def test_a_stream_reads_over_the_seam_while_entries_come_and_are_sealed(
    spark: SparkSession, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    seen: list[int] = []
    for turn in range(3):
        fill(client, "t", 1000, first=1 + 1000 * turn)
        for batch in drained(spark, url, tmp_path, subscribe="t", startingOffsets="earliest", maxOffsetsPerTrigger=700):
            assert len(batch) <= 700
            seen += batch
        wait_for_blocks(client, "t", 1)
    assert seen == list(range(1, 3001))


def test_export_crosses_the_seam_piece_by_piece(client: redis.Redis) -> None:
    fill(client, "t", 3000)
    wait_for_blocks(client, "t", 5)
    client.xdel("t", "7-0", "2999-0")
    for most in (1, 100, 2500, 10_000):
        found: list[int] = []
        after = (0, 0) if most > 1 else (2990, 0)
        while values_ := client.execute_command("TOPIC.EXPORT", "t", b"(%d-%d" % after, "+", "COUNT", most, "COMPLETE"):
            for value in values_:
                found += [ms for ms, _ in entry_ids.unpack_all(Chunk(b"", value).ids)]
            after = (found[-1], 0)
        start = 1 if most > 1 else 2991
        assert found == [number for number in range(start, 3001) if number not in (7, 2999)]
