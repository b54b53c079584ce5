"""However a connection to a durable subscriber ends: what its program has not read is there for the next one, and what
it has read does not come twice where the kernels tell."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

ELSEWHERE = {"PYTHONPATH": str(Path(__file__).parent / "elsewhere")}
"""Clients are on this machine, and the server cannot tell."""


@pytest.fixture(params=["tcp", "unix", "elsewhere"])
def way(request: pytest.FixtureRequest) -> str:
    """Between a client and the server."""
    return str(request.param)


@pytest.fixture
def server(serve: Serve, way: str, tmp_path: Path) -> ServerProcess:
    return start(serve, way, tmp_path)


def start(serve: Serve, way: str, tmp_path: Path) -> ServerProcess:
    return serve("--unixsocket", str(tmp_path / "socket"), environment=ELSEWHERE if way == "elsewhere" else {})


def attached(server: ServerProcess, way: str, name: str = "d") -> Peer:
    peer = Peer(str(server.folder / "socket") if way == "unix" else server.port)
    assert peer.do("CLIENT", "SETNAME", f"durable:{name}") == b"OK"
    assert peer.do("SUBSCRIBE", "news")[0] == b"subscribe"
    return peer


def publish(server: ServerProcess, *payloads: str) -> None:
    with server.connect() as publisher:
        publisher.send(b"".join([request("PUBLISH", "news", payload) for payload in payloads]))
        publisher.replies(len(payloads))


def waiting(server: ServerProcess, name: str = "d") -> int:
    """Messages that are in its mailbox."""
    with server.connect() as asking:
        flat = asking.do("SUBSCRIBER.INFO", name)
        return int(flat[flat.index(b"backlog_messages") + 1])


def is_attached(server: ServerProcess) -> bool:
    with server.connect() as asking:
        flat = asking.do("SUBSCRIBER.INFO", "d")
        return bool(flat[flat.index(b"attached") + 1])


def heard(peer: Peer) -> list[str]:
    """All up to the message `end`."""
    found: list[str] = []
    while not found or found[-1] != "end":
        found.append(peer.reply()[2].decode())
    return found


def has_come(peer: Peer) -> None:
    """Its kernel has something that it has not read."""
    peer.socket.recv(1, socket.MSG_PEEK)


@pytest.mark.parametrize("read", [0, 2])
def test_end_that_becomes_a_cut_only_later_loses_nothing_that_was_not_read(
    server: ServerProcess, way: str, read: int
) -> None:
    """As redis-py closes, and the program loses the processor between its shutdown() and its close()."""
    peer = attached(server, way)
    for payload in ("1", "2")[:read]:
        publish(server, payload)
        assert peer.reply()[2] == payload.encode()
    publish(server, "3", "4")
    has_come(peer)
    peer.socket.shutdown(socket.SHUT_RDWR)
    until(lambda: not is_attached(server), "its end")
    peer.close()
    publish(server, "end")
    with attached(server, way) as again:
        assert heard(again)[-3:] == ["3", "4", "end"]


def test_what_was_read_before_a_peaceful_end_does_not_come_again(server: ServerProcess, way: str) -> None:
    with attached(server, way) as peer:
        publish(server, "1", "2")
        peer.replies(2)
        peer.socket.shutdown(socket.SHUT_RDWR)
    publish(server, "end")
    with attached(server, way) as again:
        assert heard(again) == ["end"]
        until(lambda: not waiting(server), "an empty mailbox")


@pytest.mark.parametrize("way", ["tcp", "unix"])
def test_what_lies_unread_in_a_program_that_hangs_is_kept_until_it_is_killed(server: ServerProcess, way: str) -> None:
    reading = attached(server, way, "reading")
    hanging = attached(server, way)
    publish(server, "1", "2")
    has_come(hanging)
    reading.replies(2)
    until(lambda: not waiting(server, "reading"), "the time for which it is kept")
    hanging.close() if way == "unix" else hanging.reset()
    publish(server, "end")
    with attached(server, way) as again:
        assert heard(again) == ["1", "2", "end"]
    reading.close()


def test_what_the_older_connection_has_not_read_is_said_to_the_one_that_takes_over(
    server: ServerProcess, way: str
) -> None:
    older = attached(server, way)
    publish(server, "1", "2")
    has_come(older)
    with attached(server, way) as newer:
        publish(server, "end")
        assert heard(newer) == ["1", "2", "end"]
    older.close()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_not_read_when_the_server_ends_is_said_by_the_next(
    serve: Serve, way: str, tmp_path: Path, by: signal.Signals
) -> None:
    server = start(serve, way, tmp_path)
    peer = attached(server, way)
    publish(server, "1", "2")
    has_come(peer)
    server.end(by)
    peer.close()
    server = start(serve, way, tmp_path)
    publish(server, "end")
    with attached(server, way) as again:
        assert heard(again) == ["1", "2", "end"]


@pytest.mark.parametrize("words", [("SUBSCRIBER.DETACH",), ("RESET",), ("QUIT",)])
def test_who_says_that_it_wants_no_more_has_what_it_has_read(
    server: ServerProcess, way: str, words: tuple[str]
) -> None:
    with attached(server, way) as peer:
        publish(server, "1", "2")
        peer.replies(2)
        assert peer.do(*words) in (1, b"RESET", b"OK")
        if words == ("QUIT",):
            assert peer.is_closed()
        publish(server, "end")
        with attached(server, way) as again:
            assert heard(again) == ["end"]


def test_who_quits_without_reading_gets_it_again(server: ServerProcess, way: str) -> None:
    peer = attached(server, way)
    publish(server, "1", "2")
    has_come(peer)
    peer.send(request("QUIT"))
    until(lambda: not is_attached(server), "its end")
    peer.close()
    publish(server, "end")
    with attached(server, way) as again:
        assert heard(again) == ["1", "2", "end"]
