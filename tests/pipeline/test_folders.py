"""A store's folder, and a cold store by itself, in the place of a server."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import redis
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from server_process import Serve

import rlite_pubsub
from rlite_pubsub.pipeline.options import SourceOptions
from tests.pipeline.cold_server import SMALL_BLOCKS, wait_for_blocks
from tests.pipeline.test_reader import fill, load, values
from tests.pipeline.test_writer import save


def test_a_folder_is_read_and_written_without_a_server(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "a store"
    save(spark.range(1, 3001, 1, 3).selectExpr("cast(id as string) value"), str(folder), topic="t")
    assert values(load(spark, str(folder), subscribe="t", minPartitions=3)) == list(range(1, 3001))
    assert values(load(spark, f"rlite://{folder}", subscribePattern=".*")) == list(range(1, 3001))
    with rlite_pubsub.Redis(folder) as client:
        assert client.xlen("t") == 3000


def test_a_folder_is_read_while_a_server_has_it(
    spark: SparkSession, serve: Serve, client: redis.Redis, url: str, tmp_path: Path
) -> None:
    fill(client, "t", 100)
    folder = client.config_get("dir")["dir"]
    assert values(load(spark, folder, subscribe="t")) == values(load(spark, url, subscribe="t"))


def test_a_folder_without_a_store_is_an_error_and_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match="there is no store in .*nothing on .*redis://host:port"):
        load(spark, str(tmp_path / "nothing"), subscribe="t").collect()
    assert not (tmp_path / "nothing").exists()


def test_a_url_without_a_scheme_is_a_folder_or_a_host_and_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert SourceOptions.of({"url": "./store"}).url == f"rlite://{tmp_path}/store"
    assert SourceOptions.of({"url": "rlite:///./store?db=2"}).url == f"rlite://{tmp_path}/store?db=2"
    assert SourceOptions.of({"url": "127.0.0.1:6379"}).url == "redis://127.0.0.1:6379"
    assert SourceOptions.of({"coldPath": "/cold"}).url is None


def test_history_is_read_from_a_cold_store_alone(
    spark: SparkSession, serve: Serve, tmp_path: Path
) -> None:
    server = serve(*SMALL_BLOCKS)
    with redis.Redis(port=server.port) as client:
        fill(client, "t", 3000)
        wait_for_blocks(client, "t", 5)
        every = dict(client.xinfo_stream("t"))
        assert every["length"] == 3000
    shutil.copytree(server.store_folder / "cold", tmp_path / "copy")
    server.end()

    def history(**options: object) -> list[int]:
        reader = spark.read.format("rlite").option("coldPath", str(tmp_path / "copy"))
        for name, value in options.items():
            reader = reader.option(name, value)  # type: ignore[arg-type]
        return values(reader.load())

    found = history(subscribe="t")
    assert 1000 < len(found) < 3000 and found == list(range(1, len(found) + 1))
    assert history(subscribePattern="t|u", startingTimestamp=10, endingTimestamp=21) == list(range(10, 21))
    assert history(subscribe="t", startingOffsets='{"t": "990-0"}', endingOffsets='{"t": "1000-0"}') == [
        *range(991, 1001)
    ]
    with pytest.raises(PySparkException, match="there is no topic 'nothing'"):
        history(subscribe="nothing")
    next((tmp_path / "copy").rglob("*.parquet")).unlink()
    with pytest.raises(PySparkException, match="topic 't': .*this block is not there"):
        history(subscribe="t")
    assert len(history(subscribe="t", failOnDataLoss="false")) < len(found)
    with pytest.raises(PySparkException, match="coldPath: there is no cold store in"):
        spark.read.format("rlite").option("coldPath", str(tmp_path / "no")).option("subscribe", "t").load().collect()
    with pytest.raises(PySparkException, match="history alone can't be streamed"):
        reader = spark.readStream.format("rlite").option("coldPath", str(tmp_path / "copy")).option("subscribe", "t")
        writer = reader.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path / "c"))
        writer.start().processAllAvailable()
