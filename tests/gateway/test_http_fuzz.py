"""The fuzzer of HTTP, beside RESP's (tests/protocol/test_fuzz.py): requests that are right, damaged in a few places and
cut anywhere, over a few connections at once. Whatever comes, the server goes on: it answers with a status of HTTP or
closes, a Redis client's PING is answered, nothing is in the log that it would warn of, and no connection stays behind.

RLITE_FUZZ_SECONDS makes it run for longer than the few seconds of every day, with another seed each time.
"""

from __future__ import annotations

import os
import random
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from damaged_requests import damaged
from http_server import HttpServer
from patience import PATIENCE_S, until

SECONDS = float(os.environ.get("RLITE_FUZZ_SECONDS", "0"))
SEED = random.SystemRandom().randrange(2**32) if SECONDS else 20261119
ROUNDS = 400
MAX_GROWTH_BYTES = 16 << 20


def said(server: HttpServer, data: bytes, chance: random.Random) -> bytes:
    """What the server answers to `data`, sent in pieces, once it says no more."""
    with socket.create_connection(("127.0.0.1", server.http_port), PATIENCE_S) as peer:
        try:
            while data:
                size = chance.randrange(1, len(data) + 1)
                peer.sendall(data[:size])
                data = data[size:]
            peer.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := peer.recv(1 << 16):
                answer += piece
                if b"text/event-stream" in answer:
                    return answer  # a stream says no end
            return answer
        except TimeoutError:
            raise
        except OSError:  # it has closed before we were done
            return b""


def test_damaged_requests_leave_the_server_as_it_was(
    serve_http: Callable[..., HttpServer], tmp_path: Path
) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    server = serve_http("--http-body-timeout", "1")
    warm_at, until_time = time.monotonic() + SECONDS / 5, time.monotonic() + SECONDS
    with server.connect() as peer:
        rounds = 0
        while rounds < ROUNDS // 4 or time.monotonic() < warm_at:  # what is stored fills caches, once
            said(server, damaged(chance), chance)
            rounds += 1
        memory = server.own_memory_bytes()
        while rounds < ROUNDS or time.monotonic() < until_time:
            data = damaged(chance)
            answer = said(server, data, chance)
            assert not answer or re.match(rb"HTTP/1\.[01] [1-5]\d\d ", answer), (SEED, data, answer)
            assert not re.match(rb"HTTP/1\.[01] 500 ", answer), (SEED, data, answer)
            assert peer.do("PING") == b"PONG", (SEED, data)
            rounds += 1
        assert server.own_memory_bytes() - memory < MAX_GROWTH_BYTES, SEED
    until(lambda: server.descriptors() < 60, "the end of the connections")
    for line in server.log().splitlines():
        assert "Traceback" not in line and " # " not in line or "initialized" in line, line


@pytest.mark.parametrize("head", [b"GET / HTTP/1.1\r\n", b"POST /api/events HTTP/1.1\r\nhost: x\r\n"])
def test_endless_head_is_ended(serve_http: Callable[..., HttpServer], head: bytes) -> None:
    server = serve_http()
    with socket.create_connection(("127.0.0.1", server.http_port), PATIENCE_S) as peer:
        peer.sendall(head)
        with pytest.raises(OSError):
            while True:
                peer.sendall(b"x-name: " + b"v" * 8000 + b"\r\n")
