"""The server without what only Linux has: epoll, mutexes, /proc, and more (unlike_linux/sitecustomize.py)."""

from __future__ import annotations

import signal
import urllib.request
from pathlib import Path

import pytest
from patience import PATIENCE_S
from peer import Peer, request
from ports import free_port
from server_process import Serve, ServerProcess

UNLIKE_LINUX = {"PYTHONPATH": str(Path(__file__).parent / "unlike_linux")}


@pytest.fixture
def server(serve: Serve) -> ServerProcess:
    return serve(environment=UNLIKE_LINUX)


def test_it_is_unlike_linux(server: ServerProcess) -> None:
    told = server.connect().do("INFO", "server")

    assert b"multiplexing_api:kqueue\r\n" in told


def test_messages_requests_and_waits_go_through(server: ServerProcess) -> None:
    subscriber, publisher, waiting = server.connect(), server.connect(), server.connect()
    subscriber.do("SUBSCRIBE", "a")
    waiting.send(request("BLPOP", "list", "0"))
    publisher.send(request("PUBLISH", "a", "x" * 1000) * 2000 + request("RPUSH", "list", "one"))

    assert publisher.replies(2001) == [1] * 2001
    assert subscriber.replies(2000) == [[b"message", b"a", b"x" * 1000]] * 2000
    assert waiting.reply() == [b"list", b"one"]


def test_slow_subscriber_gets_all_that_was_spilled(serve: Serve) -> None:
    server = serve("--spill-threshold", "64kb", environment=UNLIKE_LINUX)
    slow, publisher = server.connect(receive_buffer_bytes=4096), server.connect()
    slow.do("SUBSCRIBE", "a")
    publisher.send(request("PUBLISH", "a", "y" * 10_000) * 1000)
    assert publisher.replies(1000) == [1] * 1000

    assert slow.replies(1000) == [[b"message", b"a", b"y" * 10_000]] * 1000


def test_client_that_goes_away_is_forgotten(server: ServerProcess) -> None:
    peer, admin = server.connect(), server.connect()
    peer.do("SUBSCRIBE", "a")
    peer.close()

    while admin.do("PUBSUB", "NUMSUB", "a") != [b"a", 0]:
        pass
    assert admin.do("PUBLISH", "a", "x") == 0


@pytest.mark.parametrize("policy", ["everysec", "always"])
def test_what_was_written_is_there_after_a_kill(serve: Serve, policy: str) -> None:
    first = serve("--appendfsync", policy, environment=UNLIKE_LINUX)
    peer = first.connect()
    assert [peer.do("XADD", "t", f"{number}-1", "n", number) for number in range(1, 50)]
    first.end(signal.SIGKILL)

    second = serve("--appendfsync", policy, environment=UNLIKE_LINUX)
    assert second.connect().do("XLEN", "t") == 49


def test_two_servers_write_to_one_store_in_turns_and_one_may_die(serve: Serve) -> None:
    """The writer's lock is a file's then, and is let go of when its holder dies."""
    one, other = serve(environment=UNLIKE_LINUX), serve(environment=UNLIKE_LINUX)
    subscriber = other.connect()
    subscriber.do("SUBSCRIBE", "a")
    peers = [server.connect() for server in (one, other) for _ in range(4)]
    for peer in peers:
        peer.send(request("INCR", "n") * 500)
    for peer in peers:
        assert len(peer.replies(500)) == 500
    assert other.connect().do("GET", "n") == b"4000"
    assert one.connect().do("PUBLISH", "a", "x") == 1
    assert subscriber.reply() == [b"message", b"a", b"x"]

    busy = one.connect()
    busy.send(request("INCR", "m") * 5000)
    one.end(signal.SIGKILL)
    assert other.connect().do("SET", "k", "v") == b"OK"


def test_http_serves(serve: Serve) -> None:
    pytest.importorskip("uvicorn")
    port = free_port()
    serve("--http-port", str(port), environment=UNLIKE_LINUX)

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
        assert answer.status == 200


def test_unix_socket_serves(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "socket"
    serve("--unixsocket", str(path), environment=UNLIKE_LINUX)

    with Peer(str(path)) as peer:
        assert peer.do("PING") == b"PONG"
