"""Samples of what goes on: one, and a stream of them."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable

from event_source import EventSource
from http_server import HttpServer
from patience import PATIENCE_S, until

Serve = Callable[..., HttpServer]
Sample = dict[str, int]


def stats(server: HttpServer) -> Sample:
    status, headers, answer = server.ask("GET", "/api/stats")
    assert status == 200 and headers["cache-control"] == "no-store"
    sample: Sample = json.loads(answer)
    return sample


def follow(server: HttpServer) -> EventSource:
    return EventSource(server.http_port, path="/api/stats", Accept="text/event-stream")


def take(source: EventSource, count: int) -> list[Sample]:
    return [json.loads(event.data) for event in source.take(count)]


def test_sample_counts_what_has_happened(server: HttpServer) -> None:
    redis = server.redis()
    before = stats(server)
    pubsub = redis.pubsub()
    pubsub.subscribe("news", "weather")
    pubsub.psubscribe("n*")
    for _ in range(3):
        assert pubsub.get_message(timeout=PATIENCE_S)
    redis.publish("news", "x")
    redis.xadd("log", {"a": "1"})
    redis.xadd("log", {"a": "2"})
    server.post("t", "x")
    after = stats(server)
    assert after["messages_published"] - before["messages_published"] == 1
    assert after["messages_delivered"] - before["messages_delivered"] == 2
    assert after["entries_posted"] - before["entries_posted"] == 3
    assert after["commands"] > before["commands"] and after["input_bytes"] > before["input_bytes"]
    assert after["output_bytes"] > before["output_bytes"]
    # what took long to count, on a busy machine, is not counted again at once
    until(lambda: [stats(server)[kind] for kind in ("channels", "patterns")] == [2, 1], "the count of names")
    assert after["subscribed_sessions"] == 1 == after["subscribers"] and after["sessions"] == 2
    assert after["backlog_messages"] == after["backlog_bytes"] == 0
    assert after["spilled_bytes"] == after["dropped_messages"] == 0
    assert after["ms"] >= before["ms"] and after["loop_lag_ms"] >= 0
    until(lambda: stats(server)["topics"] == 2, "a count of the topics")


def test_what_waits_for_somebody_who_is_away_is_in_the_sample(server: HttpServer) -> None:
    with server.connect() as away:
        assert away.do("CLIENT", "SETNAME", "durable:billing") == b"OK"
        away.do("SUBSCRIBE", "orders")
    until(lambda: not stats(server)["subscribed_sessions"], "the end of the session")
    server.redis().publish("orders", "x" * 100)
    sample = stats(server)
    assert sample["backlog_messages"] == 1 and sample["backlog_bytes"] > 100


def test_all_open_pages_are_given_the_same_samples(server: HttpServer) -> None:
    first = follow(server)
    early = take(first, 2)
    second = follow(server)
    assert take(second, 2) == early
    assert take(first, 1) == take(second, 1)


def test_nothing_is_sampled_where_no_page_is_open(server: HttpServer) -> None:
    source = follow(server)
    source.next()
    source.close()

    def begins_anew() -> bool:
        """Its first sample is not one that was kept, and nobody took one before it."""
        asked_ms = int(time.time() * 1000)
        again = follow(server)
        (sample,) = take(again, 1)
        again.close()
        return sample["ms"] >= asked_ms

    until(begins_anew, "a server that has noticed that the page is gone")


def test_sample_after_the_loop_was_held_up_says_for_how_long(serve: Serve) -> None:
    server = serve("--enable-debug-command", "local")
    source = follow(server)
    source.next()
    server.redis().execute_command("DEBUG", "SLEEP", "0.5")
    assert max(sample["loop_lag_ms"] for sample in take(source, 2)) > 300


def test_stream_of_samples_ends_whole_when_the_server_goes(server: HttpServer) -> None:
    source = follow(server)
    source.next()
    assert server.end() == 0
    source.response.read()  # IncompleteRead where it is cut off
    assert "Traceback" not in server.log()


def test_store_on_disk_is_all_of_its_files(server: HttpServer) -> None:
    def on_disk() -> int:
        return sum(file.stat().st_blocks * 512 for file in server.store_folder.rglob("*") if file.is_file())

    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.sendall(b"SUBSCRIBE news\r\n")
        redis = server.redis()
        until(lambda: redis.pubsub_numsub("news")[0][1] == 1, "the subscription")
        for _ in range(300):
            redis.publish("news", b"x" * 100_000)
        assert (server.store_folder / "live.mdb").stat().st_blocks * 512 > 10 << 20

        def told() -> int:
            return int(json.loads(server.ask("GET", "/api/stats")[2])["store_disk_bytes"])

        until(lambda: abs(told() - on_disk()) < 2 << 20, "the size of all files")
