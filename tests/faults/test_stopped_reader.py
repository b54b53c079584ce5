"""Law 9: a process is stopped in the instant in which it begins to read, with LMDB's lock of its table of readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from event_source import EventSource
from http_server import HttpServer
from patience import PATIENCE_S, until
from server_process import Serve
from stopped_reader import StoppedReader
from stopped_writer import StoppedWriter


@pytest.fixture
def ask() -> Iterator[Any]:
    with ThreadPoolExecutor(4) as threads:
        yield threads.submit


@pytest.mark.parametrize("environment", ["data.mdb", "live.mdb"])
def test_what_needs_no_store_goes_on_and_what_needs_it_waits(serve: Serve, ask: Any, environment: str) -> None:
    server = serve("--writer-patience", "200")
    client, other = redis.Redis(port=server.port), redis.Redis(port=server.port)
    client.set("key", "1")
    subscriber = server.connect()
    subscriber.do("SUBSCRIBE", "news")
    until(lambda: other.publish("news", "0") == 1, "the subscriber")
    assert subscriber.reply()
    with StoppedReader(server.store_folder, environment) as reader:
        reply = ask(client.strlen, "key")
        for number in range(100):
            assert other.ping()
            assert other.publish("news", str(number)) == 1
            assert subscriber.reply() == [b"message", b"news", b"%d" % number]
        if environment == "data.mdb":
            assert not reply.done()
        reader.go_on()
        assert reply.result(PATIENCE_S) == 1
        assert other.incr("key") == 2
    subscriber.close()
    client.close()
    other.close()


def test_who_waits_too_long_for_it_is_told_for_whom(serve: Serve) -> None:
    server = serve("--writer-patience", "1")
    with redis.Redis(port=server.port) as client, StoppedReader(server.store_folder) as reader:
        for _ in range(2):
            with pytest.raises(redis.ResponseError, match=rf"BUSY .*process {reader.pid} .*T \(stopped\)"):
                client.set("key", "1")
        assert client.ping()
        reader.go_on()
        assert client.set("key", "2")


def test_http_goes_on_while_a_writer_is_stopped(serve_http: Callable[..., HttpServer]) -> None:
    """Streams are open and hear, /metrics and /healthz answer, and a POST that can't be stored is told 503."""
    server = serve_http("--writer-patience", "1")
    server.post("greeting", "before")
    source = EventSource(server.http_port)
    assert source.next().data == "before"
    with StoppedWriter(server.store_folder) as writer:
        status, _, answer = server.ask("GET", "/metrics")
        assert status == 200 and b"rlite_" in answer
        status, _, answer = server.ask("POST", "/api/events?type=greeting", b"lost")
        assert status == 503 and str(writer.pid).encode() in answer, answer
        status, _, _ = server.ask("GET", "/api/events/none-such")
        assert status in (404, 405)
        writer.go_on()
        server.post("greeting", "after")
    assert source.next().data == "after"
    source.close()
