"""A topic's history as Arrow, without Spark: what XRANGE says, from blocks and from what is not in blocks yet."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import redis
from server_process import Serve, ServerProcess

from rlite_pubsub import topics
from rlite_pubsub.pipeline.errors import DataLoss, OptionRefused, TopicMissing, ValueRefused
from tests.pipeline.cold_server import SMALL_BLOCKS, fill, wait_for_blocks

FIRST_MS = 1_700_000_000_000


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve(*SMALL_BLOCKS)


def told(table: pa.Table) -> list[tuple[bytes, list[tuple[bytes, bytes]]]]:
    """(id, fields) of each entry."""
    return [
        (row["id"].encode(), [(each["name"], each["value"]) for each in row["headers"]])
        for row in table.select(["id", "headers"]).to_pylist()
    ]


def there(client: redis.Redis, low: str = "-", high: str = "+") -> list[tuple[bytes, list[tuple[bytes, bytes]]]]:
    """The same, by XRANGE."""
    return [(entry_id, list(fields.items())) for entry_id, fields in client.xrange("t", low, high)]


def test_blocks_and_the_server_together_are_what_xrange_says(
    client: redis.Redis, server: ServerProcess, url: str
) -> None:
    fill(client, "t", 2000)
    wait_for_blocks(client, "t", 10)
    every = [entry[0] for entry in client.xrange("t")]
    client.xdel("t", every[500], every[700], every[-3])
    client.xtrim("t", maxlen=1900, approximate=False)
    client.xadd("t", {"last": "hot"}, id=f"{2**63}-{2**64 - 1}")
    for source in (url, str(server.store_folder)):
        history = topics.arrow(source, "t")
        assert history.schema.names == ["id", "ms", "seq", "timestamp", "headers"]
        assert told(history.to_table()) == told(history.to_table()) == there(client)
    some = topics.arrow(url, "t", since=FIRST_MS + 300, until=datetime.fromtimestamp((FIRST_MS + 500) / 1000, UTC))
    assert told(some.to_table()) == there(client, f"{FIRST_MS + 300}", f"{FIRST_MS + 499}")
    behind = topics.arrow(url, "t", since=f"{FIRST_MS + 300}-0", until=f"{FIRST_MS + 310}-0")
    assert told(behind.to_table()) == there(client, f"({FIRST_MS + 300}-0", f"{FIRST_MS + 310}-0")
    assert topics.arrow(url, "t", since=timedelta(hours=1)).to_table().num_rows == 1  # the one of a far future
    alone = topics.arrow(server.store_folder / "cold", "t", columns="ms, seq").to_table()
    assert alone.num_rows > 1500 and alone.schema.names == ["ms", "seq"]


def test_fields_are_columns_of_their_types_by_the_rules_of_the_page(client: redis.Redis, url: str) -> None:
    for number in range(600):
        client.xadd("t", {"item": f"tea {number}", "price": f"{number}.50", "id": "x", "at": "2026-11-19T10:00:00"})
    wait_for_blocks(client, "t", 2)
    columns = ["id", "item", "price decimal(9,2)", "at timestamp", "id as field_id", "key"]
    history = topics.arrow(url, "t", columns=columns)
    table = history.to_table()
    assert [str(one) for one in table.schema.types] == [
        "string", "string", "decimal128(9, 2)", "timestamp[us, tz=UTC]", "string", "binary",
    ]  # fmt: skip
    assert table["id"].to_pylist() == [entry_id.decode() for entry_id, _ in client.xrange("t")]
    assert table["item"][7].as_py() == "tea 7" and str(table["price"][7]) == "7.50"
    assert table["at"][0].as_py() == datetime(2026, 11, 19, 10, tzinfo=UTC) and table["key"].null_count == 600
    entry = client.xadd("t", {"price": "cheap"}).decode()
    with pytest.raises(ValueRefused, match=f"entry {entry}: column 'price': 'cheap' is no double; mode PERMISSIVE"):
        topics.arrow(url, "t", columns="price double").to_table()
    assert topics.arrow(url, "t", columns="price double", mode="PERMISSIVE").to_table()["price"].null_count == 1


def test_what_makes_no_sense_is_refused_and_what_is_gone_is_an_error(client: redis.Redis, url: str) -> None:
    for options, error, text in (
        ({}, TopicMissing, "there is no topic 'no'"),
        ({"columns": "price duble"}, OptionRefused, "no type 'duble'"),
        ({"since": "end"}, ValueError, "since= is a moment"),
        ({"since": "yesterday"}, ValueError, "since="),
        ({"colums": "x"}, OptionRefused, "unknown option 'colums'"),
    ):
        said: dict[str, Any] = dict(options)
        with pytest.raises(error, match=text):
            topics.arrow(url, "no", **said)
    for number in range(1, 101):
        client.xadd("t", {"value": "x"}, id=f"{number}-0")
    history = topics.arrow(url, "t")
    client.xadd("t", {"value": "later"})
    assert history.to_table().num_rows == 100
    client.xtrim("t", minid="51-0", approximate=False)
    with pytest.raises(DataLoss, match="trimmed up to 50-0"):
        history.to_table()


def test_an_event_loop_goes_on_while_it_is_read_and_a_reader_that_stops_early_leaves_no_thread(
    client: redis.Redis, url: str
) -> None:
    import threading

    fill(client, "t", 3000)
    wait_for_blocks(client, "t", 10)

    async def read() -> tuple[int, int]:
        turns = rows = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(turn())
        async for batch in await topics.aio.arrow(url, "t"):
            rows += batch.num_rows
        other.cancel()
        return rows, turns

    rows, turns = asyncio.run(read())
    assert rows == 3000 and turns > 10
    batches = iter(topics.arrow(url, "t"))
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not [one for one in threading.enumerate() if one.name.startswith("history")]
    assert pa.RecordBatchReader.from_stream(topics.arrow(url, "t", columns="ms")).read_all().num_rows == 3000


_WITHOUT = """
import sys
sys.modules["pyspark"] = None
from rlite_pubsub import topics
assert "pyarrow" not in sys.modules
print(topics.arrow(sys.argv[1], "t", columns="ms, n bigint").to_table()["n"].to_pylist())
"""


def test_it_needs_no_spark_and_nothing_is_imported_before_it_is_asked_for(client: redis.Redis, url: str) -> None:
    for number in range(3):
        client.xadd("t", {"n": number})
    command = [sys.executable, "-c", _WITHOUT, url]
    found = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert found.stdout.strip() == "[0, 1, 2]", found.stderr
