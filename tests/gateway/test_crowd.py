"""Thousands of streams that are open at once."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from http_server import HttpServer
from patience import PATIENCE_S

STREAMS = 5000
SPARE_DESCRIPTORS = 200
MOST_BYTES_OF_ONE = 32 * 1024
_REQUEST = b"GET /api/events?last_event_id=latest HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def descriptors() -> Iterator[None]:
    """As many as the streams need, here; the server sees to itself."""
    before = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = STREAMS + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"the system grants {hard} descriptors only")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def read_up_to(stream: socket.socket, end: bytes) -> bytes:
    got = b""
    while end not in got:
        part = stream.recv(65536)
        assert part, got
        got += part
    return got


def test_five_thousand_streams_are_open_at_once_and_each_is_told_everything(
    server: HttpServer, descriptors: None
) -> None:
    server.post("first", "x")
    before = server.own_memory_bytes()
    with ExitStack() as stack:
        streams = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.http_port), PATIENCE_S))
            for _ in range(STREAMS)
        ]
        for stream in streams:
            stream.sendall(_REQUEST)
        for stream in streams:
            assert read_up_to(stream, b"\nid: ").startswith(b"HTTP/1.1 200 OK\r\n")
        redis = server.redis()
        for number in range(3):
            redis.xadd("events", {"type": "wave", "body": str(number)})
            assert redis.ping()
        for stream in streams:
            said = read_up_to(stream, b"data: 2\n\n")
            assert said.index(b"data: 0\n\n") < said.index(b"data: 1\n\n") < said.index(b"data: 2\n\n")
            assert said.count(b"event: wave") == 3
        assert (server.own_memory_bytes() - before) / STREAMS < MOST_BYTES_OF_ONE
