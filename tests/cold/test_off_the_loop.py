"""No request, wherever it stands, has the event loop wait for a block: those that need one wait, and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cold_server import Sealer, Twins, gated, notes_of, pairs, said, until_sealed
from http_server import HttpServer
from patience import until
from peer import Peer, Word, request

BLOCK_BYTES = 32 << 10
LAST = 1500
"""Of the topic `t`, most of which is in blocks."""

Words = tuple[Word, ...]


@pytest.fixture
def history(twins: Twins, seal: Callable[..., Sealer]) -> Twins:
    """As in test_seamless.py, and the first entry of the first block is deleted: who wants to know where the topic
    begins has to look into the block."""
    twins.cold.do("CONFIG", "SET", "cold-cache", 0)
    twins.add("t", range(1, LAST + 1), 50)
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES)
    until_sealed(twins.cold, "t", BLOCK_BYTES)
    sealer.end()
    until(lambda: b"cold_cached_bytes" in twins.cold.do("INFO"), "the server's notice of the blocks")
    twins.do("XDEL", "t", "1-1", "2-2")
    for name in ("g", "h", "timed"):
        twins.do("XGROUP", "CREATE", "t", name, 0)
    twins.do("XREADGROUP", "GROUP", "h", "c", "COUNT", 700, "STREAMS", "t", ">")
    for peer in (twins.cold, twins.plain):
        peer.do("QUEUE.SUBSCRIBER", "t", "q", 0)
    twins.do("COPY", "t", "origin")
    have_nothing_here(twins)
    twins.forget_notes()
    return twins


def have_nothing_here(twins: Twins) -> None:
    """What the shelf has is the last block, which nobody asks for."""
    have_nothing_in(twins.cold)


def have_nothing_in(peer: Peer) -> None:
    blocks = pairs(peer.do("TOPIC.BLOCKS", "t"))[b"blocks"]
    last = pairs(blocks[-1])[b"last"]
    peer.do("XRANGE", "t", last, last)


def begin_again(twins: Twins) -> None:
    """The topic is as it was."""
    twins.do("COPY", "origin", "t", "REPLACE")
    have_nothing_here(twins)


def assert_loop_never_waited(twins: Twins, *asked: object) -> None:
    assert twins.notes == "", asked


READ = ("XREADGROUP", "GROUP", "g", "c", "COUNT", 300, "STREAMS", "t")
ALONE: list[Words] = [
    ("XGROUP", "CREATE", "t", "new", "5-2"),
    ("XGROUP", "CREATE", "t", "new", "5-2", "ENTRIESREAD", 3),
    ("XGROUP", "SETID", "t", "h", "5-2"),
    ("XGROUP", "SETID", "t", "h", "0"),
    ("XGROUP", "CREATECONSUMER", "t", "g", "d"),
    ("XGROUP", "DELCONSUMER", "t", "h", "c"),
    ("XGROUP", "DESTROY", "t", "h"),
    (*READ, ">"),
    ("XREADGROUP", "GROUP", "h", "c", "COUNT", 2, "STREAMS", "t", 0),
    ("XCLAIM", "t", "h", "d", 0, "3-0", "400-1", "1200-0"),
    ("XAUTOCLAIM", "t", "h", "d", 0, 0, "COUNT", 500),
    ("XACK", "t", "h", "3-0", "700-1"),
    ("XINFO", "GROUPS", "t"),
    ("QUEUE.SUBSCRIBER", "t", "r", "3-0"),
    ("QUEUE.SUBSCRIBER", "t", "r"),
    ("QUEUE.POP", "t", "q", "COUNT", 3),
    ("QUEUE.PEEK", "t", "q"),
    ("QUEUE.LIST", "t"),
    ("TOPIC.GROUP", "t", "h"),
    ("TOPIC.EMPTY", "t"),
]


def test_one_that_needs_a_block_waits_alone(history: Twins) -> None:
    for words in ALONE:
        begin_again(history)
        history.do(*words)
        assert_loop_never_waited(history, words)


TOGETHER: list[list[Words]] = [
    *[[words] for words in ALONE],
    [(*READ, ">"), (*READ, ">"), (*READ, ">"), (*READ, 0)],
    [("XGROUP", "CREATE", "t", "g2", 0), ("XREADGROUP", "GROUP", "g2", "c", "COUNT", 3, "STREAMS", "t", ">")],
    [("XGROUP", "SETID", "t", "g", "800-2"), (*READ, ">")],
    [("XGROUP", "SETID", "t", "g", "0"), ("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "NOACK", "STREAMS", "t", ">")],
    [("XCLAIM", "t", "g", "d", 0, "3-0", "FORCE", "LASTID", "700-1"), (*READ, ">")],
    [("QUEUE.POP", "t", "q", "COUNT", 300)] * 3,
    [("QUEUE.SUBSCRIBER", "t", "r", "800-2"), ("QUEUE.POP", "t", "r", "COUNT", 3)],
    [("SELECT", 1), ("XLEN", "t"), ("SELECT", 0), ("XRANGE", "t", "3", "5"), (*READ, ">")],
    [("XDEL", "t", "3-0"), (*READ, ">")],
    [("TOPIC.REQUEUE", "t", "h", "3-0"), ("XREADGROUP", "GROUP", "h", "d", "COUNT", 1, "STREAMS", "t", ">")],
]


def test_a_transaction_waits_before_it_begins(history: Twins) -> None:
    for queue in TOGETHER:
        begin_again(history)
        history.do("MULTI")
        for words in queue:
            history.do(*words)
        found = history.do("EXEC")
        assert len(found) == len(queue)
        assert not any(isinstance(reply, tuple) and reply[0] == "error" for reply in found), found
        assert_loop_never_waited(history, queue)


def test_others_are_answered_while_a_transaction_waits(history: Twins) -> None:
    history.gate.touch()
    waiting: list[Peer] = []
    for words in (
        (*READ, ">"),
        ("XCLAIM", "t", "h", "d", 0, "3-0", "400-1"),
        ("XAUTOCLAIM", "t", "h", "d", 0, 0, "COUNT", 500),
        ("QUEUE.POP", "t", "q"),
    ):
        peer = history.cold_server.connect()
        peer.send(request("MULTI") + request(*words) + request("EXEC"))
        assert [peer.reply(), peer.reply()] == [b"OK", b"QUEUED"]
        waiting.append(peer)
    with history.cold_server.connect() as other:
        for number in range(50):
            assert other.do("ECHO", number) == b"%d" % number
            assert other.do("XADD", "u", "*", "a", number)
    history.gate.unlink()
    for peer in waiting:
        (reply,) = peer.reply()
        assert reply and not isinstance(reply, Exception)
        peer.close()
    assert_loop_never_waited(history)


def test_who_is_blocked_until_a_topic_is_resumed_waits_for_its_block_alone(history: Twins) -> None:
    cold = history.cold
    cold.do("TOPIC.PAUSE", "t")
    popping, reading = history.cold_server.connect(), history.cold_server.connect()
    popping.send(request("QUEUE.POP", "t", "q", "BLOCK", 0))
    reading.send(request("XREADGROUP", "GROUP", "g", "c", "COUNT", 2, "BLOCK", 0, "STREAMS", "t", ">"))
    until(lambda: b"blocked_clients:2" in cold.do("INFO", "clients"), "both")
    have_nothing_here(history)
    cold.do("TOPIC.RESUME", "t")
    assert popping.reply()[0] == b"3-0"
    assert said(reading.reply())[0][1][0][0] == b"3-0"
    popping.close()
    reading.close()
    assert_loop_never_waited(history)


@pytest.mark.parametrize("how", ["requeue", "time", "read"])
def test_what_is_buried_is_read_elsewhere(history: Twins, how: str) -> None:
    cold = history.cold
    cold.do("TOPIC.GROUP", "t", "h", "MAXDELIVERIES", 1, "DEADLETTER", "dead")
    if how == "requeue":
        assert cold.do("TOPIC.REQUEUE", "t", "h", "3-0") == 1
        expected = 1
    else:
        have_nothing_here(history)
        cold.do("TOPIC.GROUP", "t", "h", "TIMEOUT", 1)
        if how == "read":
            cold.do("XREADGROUP", "GROUP", "h", "d", "COUNT", 1, "STREAMS", "t", ">")
        expected = 700 + (how == "read")  # what was read then is over its time, too
    until(lambda: cold.do("XLEN", "dead") == expected, "the dead letters")
    first = cold.do("XRANGE", "dead", "-", "+", "COUNT", 1)[0][1]
    assert first[:2] == [b"n", b"3"] and first[4:6] == [b"dead-letter-topic", b"t"]
    assert_loop_never_waited(history)


def test_who_looks_at_the_server_has_nobody_wait_for_a_block(
    serve_http: Callable[..., HttpServer], seal: Callable[..., Sealer], tmp_path: Path
) -> None:
    """/metrics and /api/groups tell of a topic where it begins, and how far its groups are behind."""
    server = serve_http(environment=gated(tmp_path))
    with server.connect() as peer:
        for number in range(1, LAST + 1):
            peer.send(request("XADD", "t", f"{number}-0", "v", "v" * 50))
        peer.replies(LAST)
        peer.do("XGROUP", "CREATE", "t", "g", "5-0")
        sealer = seal(server.store_folder, BLOCK_BYTES)
        until_sealed(peer, "t", BLOCK_BYTES)
        sealer.end()
        until(lambda: b"cold_cached_bytes" in peer.do("INFO"), "the server's notice of the blocks")
        peer.do("CONFIG", "SET", "cold-cache", 0)
        peer.do("XDEL", "t", "1-0", "9-0")
        have_nothing_in(peer)
        peer.do("CONFIG", "SET", "cold-cache", "64mb")
    for path in ("/metrics", "/api/groups", "/api/stats"):
        status, _, _ = server.ask("GET", path)
        assert status == 200
    notes = notes_of(tmp_path)
    assert not notes.exists(), notes.read_text()
    until(lambda: b'rlite_topic_oldest_seconds{topic="t"}' in server.ask("GET", "/metrics")[2], "what was fetched")
