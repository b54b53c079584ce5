"""A TOPIC.COMMIT of many rows is made by a thread, and the server's loop goes on meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S, until
from peer import Peer, request
from server_process import Serve

from rlite_pubsub import Server
from rlite_pubsub.commands.topics import stage
from rlite_pubsub.keyspace.topic import staged
from rlite_pubsub.protocol.encoder import bulk_array

ROWS = 2 * stage.ROWS_AT_ONCE


class Gate:
    """Holds the thread that commits, when it has written half of the rows."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()
        self._steps = 0
        self._append = staged._append
        patch.setattr(staged, "_append", self._held)

    def _held(self, *words: Any) -> None:
        self._steps += 1
        if self._steps == 2:
            assert threading.current_thread().name == "rlite-work"
            self.reached.set()
            assert self._opened.wait(PATIENCE_S)
        self._append(*words)

    def wait(self) -> None:
        assert self.reached.wait(PATIENCE_S)

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    held = Gate(monkeypatch)
    yield held
    held.open()


def put_aside(peer: Peer, batch: int = 0, topic: str = "t") -> tuple[Any, ...]:
    """Two pieces of `ROWS` rows in all; the request that commits them."""
    half = ROWS // 2
    for piece in range(2):
        rows = b"".join([bulk_array((b"value", b"%d" % number)) for number in range(half * piece, half * piece + half)])
        assert peer.do("TOPIC.STAGE", "app", batch, 0, 7, piece, topic, half, rows) == half
    return "TOPIC.COMMIT", "app", batch, 0, 7, ROWS


def begin(peer: Peer, gate: Gate) -> None:
    """Returns in the middle of a commit."""
    peer.send(request(*put_aside(peer)))
    gate.wait()


def in_line(port: int) -> int:
    with Peer(port) as peer:
        found: bytes = peer.do("INFO", "subscribers")
    return int(found.partition(b"writer_waiting_clients:")[2].split()[0])


def values(peer: Peer, topic: str = "t") -> list[bytes]:
    return [fields[1] for _, fields in peer.do("XRANGE", topic, "-", "+")]


WHOLE = [b"%d" % number for number in range(ROWS)]


def test_others_are_answered_and_see_nothing_of_it_until_it_is_whole(gate: Gate) -> None:
    with Server() as server, Peer(server.port) as sink, Peer(server.port) as other, Peer(server.port) as subscriber:
        other.do("SET", "key", "value")
        subscriber.do("SUBSCRIBE", "news")
        begin(sink, gate)
        for _ in range(20):
            assert other.do("PING") == b"PONG"
            assert other.do("GET", "key") == b"value"
            assert other.do("EXISTS", "t") == 0
            assert other.do("PUBLISH", "news", "hello") == 1
            assert subscriber.reply() == [b"message", b"news", b"hello"]
        gate.open()
        assert sink.reply() == 1
        assert values(other) == WHOLE
        assert sink.do("TOPIC.COMMIT", "app", 0, 0, 7, ROWS) == 0
        assert other.do("XLEN", "t") == ROWS


def test_what_writes_waits_in_its_order_and_behind_it(gate: Gate) -> None:
    with Server(writer_patience=0) as server, Peer(server.port) as sink, Peer(server.port) as other:
        others = [Peer(server.port) for _ in range(3)]
        begin(sink, gate)
        for number, peer in enumerate(others):
            peer.send(request("RPUSH", "list", number) + request("XLEN", "t"))
            until(lambda count=number + 1: in_line(server.port) == count)
        other.send(request("MULTI") + request("RPUSH", "list", "last") + request("XLEN", "t") + request("EXEC"))
        until(lambda: in_line(server.port) == 4)
        gate.open()
        assert sink.reply() == 1
        assert [peer.replies(2) for peer in others] == [[count, ROWS] for count in (1, 2, 3)]  # nobody lost patience
        assert other.replies(4)[3] == [4, ROWS]
        assert other.do("LRANGE", "list", 0, -1) == [b"0", b"1", b"2", b"last"]
        for peer in others:
            peer.close()


def test_a_second_commit_waits_for_the_first(gate: Gate) -> None:
    with Server() as server, Peer(server.port) as sink, Peer(server.port) as other:
        second = put_aside(other, batch=1)
        begin(sink, gate)
        other.send(request(*second))
        until(lambda: in_line(server.port) == 1)
        gate.open()
        assert (sink.reply(), other.reply()) == (1, 1)
        assert values(other) == WHOLE + WHOLE


def test_what_the_same_turn_staged_is_committed() -> None:
    with Server() as server, Peer(server.port) as sink:
        rows = bulk_array((b"value", b"x")) * ROWS
        sink.send(
            request("MULTI")
            + request("TOPIC.STAGE", "app", 0, 0, 7, 0, "t", ROWS, rows)
            + request("EXEC")
            + request("TOPIC.COMMIT", "app", 0, 0, 7, ROWS)
            + request("XLEN", "t")
        )
        assert sink.replies(5)[3:] == [1, ROWS]


def test_a_transaction_and_a_script_commit_at_once() -> None:
    with Server() as server, Peer(server.port) as sink:
        commit = put_aside(sink)
        sink.send(request("MULTI") + request(*commit) + request("XLEN", "t") + request("EXEC"))
        assert sink.replies(4)[3] == [1, ROWS]
        call = "return redis.call(unpack(ARGV))"
        assert sink.do("EVAL", call, 0, *put_aside(sink, batch=1)) == 1
        assert sink.do("XLEN", "t") == 2 * ROWS


def test_whoever_wants_to_know_of_it_is_told(gate: Gate) -> None:
    with Server(notify_keyspace_events="KEA") as server, Peer(server.port) as sink, Peer(server.port) as other:
        reader, follower, watcher, hearer = [Peer(server.port) for _ in range(4)]
        tracker = Peer(server.port, protocol=3)
        other.do("XADD", "t", "1-1", "value", "first")
        hearer.do("SUBSCRIBE", "__keyspace@0__:t")
        reader.send(request("XREAD", "BLOCK", 0, "STREAMS", "t", "$"))
        assert follower.do("TOPIC.SUBSCRIBE", "t", "$")[:2] == [b"topic-subscribe", b"t"]
        tracker.do("CLIENT", "TRACKING", "ON")
        tracker.do("XLEN", "t")
        until(lambda: b"blocked_clients:1" in other.do("INFO", "clients"))
        begin(sink, gate)
        watcher.do("WATCH", "t")
        gate.open()
        assert sink.reply() == 1
        assert reader.reply()[0][1][0][1] == [b"value", b"0"]
        assert follower.reply()[:2] == [b"topic-message", b"t"]
        assert tracker.reply() == [b"invalidate", [b"t"]]
        assert hearer.reply() == [b"message", b"__keyspace@0__:t", b"xadd"]
        watcher.send(request("MULTI") + request("SET", "key", "value") + request("EXEC"))
        assert watcher.replies(3)[2] is None
        for peer in (reader, follower, watcher, hearer, tracker):
            peer.close()


def test_what_is_refused_is_refused_whole() -> None:
    with Server() as server, Peer(server.port) as sink:
        name, *words, _ = put_aside(sink)
        assert str(sink.do(name, *words, ROWS + 1)).startswith("NOSTAGE partition 0 of batch 0")
        sink.do("SET", "u", "text")
        other = put_aside(sink, batch=1, topic="u")
        assert str(sink.do(*other)).startswith("WRONGTYPE")
        assert sink.do("EXISTS", "t") == 0
        assert sink.do("SET", "key", "value") == b"OK"  # the loop writes again
        assert sink.do(name, *words, ROWS) == 1


def test_a_commit_that_does_not_fit_leaves_nothing(tmp_path: Path) -> None:
    with Server(store_quota=f"{48 << 20}") as server, Peer(server.port) as sink:
        rows = bulk_array((b"value", b"x" * 1000)) * 3000
        for piece in range(10):
            sink.do("TOPIC.STAGE", "app", 0, 0, 7, piece, "t", 3000, rows)
        assert str(sink.do("TOPIC.COMMIT", "app", 0, 0, 7, 30_000)).startswith("OOM")
        assert sink.do("EXISTS", "t") == 0
        assert sink.do("TOPIC.UNSTAGE", "app", 0) > 0


def test_a_client_that_goes_away_takes_nothing_back(gate: Gate) -> None:
    with Server() as server, Peer(server.port) as other:
        with Peer(server.port) as sink:
            begin(sink, gate)
        gate.open()
        until(lambda: other.do("XLEN", "t") == ROWS)
        assert other.do("SET", "key", "value") == b"OK"


def test_a_server_that_stops_in_the_midst_ends_it_first(gate: Gate, tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as threads:
        server = Server(dir=str(tmp_path)).start()
        with Peer(server.port) as sink:
            begin(sink, gate)
            stopped = threads.submit(server.stop)
            assert sink.is_closed()
            gate.open()
            stopped.result(PATIENCE_S)
    with Server(dir=str(tmp_path)) as server, Peer(server.port) as other:
        assert values(other) == WHOLE


@pytest.mark.parametrize("appendfsync", ["always", "everysec"])
def test_ephemeral_topics_are_appended_to_with_the_others(appendfsync: str) -> None:
    with Server(appendfsync=appendfsync) as server, Peer(server.port) as sink:
        assert sink.do(*put_aside(sink, topic="t#ephemeral")) == 1
        assert sink.do(*put_aside(sink, batch=1)) == 1
        assert values(sink) == values(sink, "t#ephemeral") == WHOLE


# -- other processes, and kill -9

_PROGRAM = """
import sys, rlite_pubsub
from rlite_pubsub.commands.topics import stage
from rlite_pubsub.protocol.encoder import bulk_array

client = rlite_pubsub.Redis(sys.argv[1])
rows = bulk_array((b"value", b"x")) * int(sys.argv[2])
client.execute_command("TOPIC.STAGE", "app", 0, 0, 7, 0, "t", sys.argv[2], rows)
client.execute_command("TOPIC.COMMIT", "app", 0, 0, 7, sys.argv[2])
"""


def test_another_server_of_the_store_sees_all_or_nothing_and_is_woken(gate: Gate, serve: Serve, folder: Path) -> None:
    with Server(dir=str(folder)) as server, Peer(server.port) as sink:
        elsewhere = serve()
        reader, other = elsewhere.connect(), elsewhere.connect()
        tracker = elsewhere.connect(protocol=3)
        tracker.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "t")
        reader.send(request("XREAD", "BLOCK", 0, "STREAMS", "t", "0"))
        until(lambda: b"blocked_clients:1" in other.do("INFO", "clients"))
        begin(sink, gate)
        assert other.do("EXISTS", "t") == 0
        other.send(request("SET", "key", "value") + request("XLEN", "t"))
        until(lambda: in_line(elsewhere.port) == 1)
        gate.open()
        assert sink.reply() == 1
        assert other.replies(2) == [b"OK", ROWS]
        assert reader.reply()[0][1][0][1] == [b"value", b"0"]
        assert tracker.reply() == [b"invalidate", [b"t"]]


@pytest.mark.parametrize(("point", "is_there"), [("stage-appended", False), ("written-beside", True)])
def test_kill_9_leaves_all_of_it_or_nothing(serve: Serve, point: str, is_there: bool) -> None:
    server = serve(environment={"RLITE_FAILPOINT": point})
    with server.connect() as sink:
        commit = put_aside(sink)
        sink.send(request(*commit))
        assert server.exit_code() < 0
    again = serve().connect()
    assert again.do("XLEN", "t") == (ROWS if is_there else 0)
    assert again.do(*commit) == (0 if is_there else 1)
    assert values(again) == WHOLE


def test_kill_9_of_a_program_leaves_nothing_half_done(serve: Serve, folder: Path) -> None:
    words = [sys.executable, "-c", _PROGRAM, str(folder), str(ROWS)]
    killed = subprocess.run(words, env={"RLITE_FAILPOINT": "stage-appended"}, timeout=PATIENCE_S)
    assert killed.returncode < 0
    other = serve().connect()
    assert other.do("EXISTS", "t") == 0
    assert other.do("TOPIC.COMMIT", "app", 0, 0, 7, ROWS) == 1
    assert other.do("XLEN", "t") == ROWS
