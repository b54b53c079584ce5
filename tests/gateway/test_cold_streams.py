"""Events and topics whose oldest entries are in the cold store: HTTP does not notice."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from event_source import EventSource
from http_server import HttpServer
from patience import until

pytest.importorskip("pyarrow")

COUNT = 3000


def sealed(server: HttpServer, topic: str, at_least: int) -> bool:
    with server.redis() as client:
        about = client.execute_command("TOPIC.INFO", topic)
        return int(about[b"cold-entries"]) >= at_least


@pytest.fixture
def cold(serve: Callable[..., HttpServer]) -> HttpServer:
    server = serve("--cold-store", "local", "--cold-block-size", "64kb")
    with server.redis() as client:
        pipeline = client.pipeline(transaction=False)
        for number in range(COUNT):
            type = "rare" if number % 500 == 0 else "common"
            pipeline.xadd("events", {"type": type, "body": f"{number} {'x' * 100}"})
        pipeline.execute()
    until(lambda: sealed(server, "events", COUNT // 2), "a block")
    return server


def numbers(source: EventSource, count: int) -> list[int]:
    return [int(each.data.partition(" ")[0]) for each in source.take(count)]


def test_stream_replays_blocks_and_the_hot_log_and_goes_live_without_a_gap(cold: HttpServer) -> None:
    source = EventSource(cold.http_port)
    assert numbers(source, COUNT) == list(range(COUNT))
    cold.post("common", f"{COUNT} live")
    assert numbers(source, 1) == [COUNT]


def test_stream_comes_back_in_the_midst_of_a_block(cold: HttpServer) -> None:
    first = EventSource(cold.http_port)
    assert numbers(first, 700) == list(range(700))
    again = EventSource(cold.http_port, last_id=first.last_id)
    assert numbers(again, COUNT - 700) == list(range(700, COUNT))


def test_rare_type_is_found_in_blocks(cold: HttpServer) -> None:
    source = EventSource(cold.http_port, "?typeMatcher=%5Erare%24")
    assert numbers(source, COUNT // 500) == list(range(0, COUNT, 500))


def test_entries_are_paged_across_the_seam(cold: HttpServer) -> None:
    found: list[int] = []
    after: str | None = "0-0"
    while after is not None:
        status, _, answer = cold.ask("GET", f"/api/topics/events?after={after}&count=1000")
        assert status == 200
        page = json.loads(answer)
        found += [int(each["fields"]["body"].partition(" ")[0]) for each in page["entries"]]
        after = page["next"]
    assert found == list(range(COUNT))


def test_block_that_is_damaged_is_named_and_what_is_hot_is_served(cold: HttpServer) -> None:
    for file in cold.folder.rglob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-9] + b"\0" * 9)
    status, _, answer = cold.ask("GET", "/api/topics/events?count=10")
    assert status == 503
    assert ".parquet" in json.loads(answer)["detail"]
    with cold.redis() as client:
        (last, _), *_ = client.xrevrange("events", count=1)
        before_last = client.xrevrange("events", count=2)[1][0]
    status, _, answer = cold.ask("GET", f"/api/topics/events?after={before_last.decode()}&count=10")
    assert [each["id"] for each in json.loads(answer)["entries"]] == [last.decode()]
