"""XADDs the short way: what they leave, and what they are answered, is that of as many single commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

from rlite_pubsub.engine.refusal import answers, take_back
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.errors import StoreUnwritable


def run(key: str, *values: str) -> bytes:
    """A pipeline that differs in its last argument only."""
    return b"".join([request("XADD", key, "*", "field", value) for value in values])


def warm_up(peer: Peer, key: str) -> list[bytes]:
    """After this the parser expects a run of them, and the topic is there."""
    return [peer.do("XADD", key, "*", "field", "first") for _ in range(3)]


def entries(peer: Peer, key: str) -> list[tuple[bytes, list[bytes]]]:
    return [(entry_id, fields) for entry_id, fields in peer.do("XRANGE", key, "-", "+")]


def calls_of_xadd(peer: Peer) -> bytes:
    line = next(line for line in peer.do("INFO", "commandstats").splitlines() if line.startswith(b"cmdstat_xadd:"))
    return bytes(line.split(b",")[0])


def test_a_pipeline_becomes_entries_in_order(server: ServerProcess) -> None:
    with server.connect() as peer:
        ids = warm_up(peer, "k")
        values = [f"value {number}" for number in range(1000)]
        peer.send(run("k", *values))
        ids += peer.replies(1000)
        assert entries(peer, "k") == [
            (each, [b"field", value.encode()]) for each, value in zip(ids, ["first"] * 3 + values, strict=True)
        ]
        assert calls_of_xadd(peer) == b"cmdstat_xadd:calls=1003"
        assert b"total_commands_processed:1005" in peer.do("INFO", "stats")


def test_a_look_in_the_midst_of_a_pipeline_sees_what_was_before_it(server: ServerProcess) -> None:
    with server.connect() as peer:
        warm_up(peer, "k")
        peer.send(run("k", "a", "b") + request("XLEN", "k") + run("k", "c") + request("DEL", "k") + run("k", "d"))
        replies = peer.replies(6)
        assert (replies[2], replies[4]) == (5, 1)
        assert entries(peer, "k") == [(replies[5], [b"field", b"d"])]


def test_sessions_that_append_to_several_topics_at_once_lose_nothing(server: ServerProcess) -> None:
    peers = [server.connect() for _ in range(20)]
    for number, peer in enumerate(peers):
        warm_up(peer, f"k{number % 3}")
    for _ in range(50):
        for number, peer in enumerate(peers):
            peer.send(run(f"k{number % 3}", "a", "b"))
    ids: dict[str, list[bytes]] = {f"k{number}": [] for number in range(3)}
    for number, peer in enumerate(peers):
        replies = peer.replies(100)
        assert replies == sorted(replies, key=lambda each: tuple(map(int, each.split(b"-"))))
        ids[f"k{number % 3}"] += replies
    for key, given in ids.items():
        there = {each for each, _ in entries(peers[0], key)}
        assert len(set(given)) == len(given) and set(given) <= there
    for peer in peers:
        peer.close()


def test_a_blocked_reader_gets_the_first_of_a_pipeline_alone(server: ServerProcess) -> None:
    with server.connect() as reader, server.connect() as writer, server.connect() as admin:
        warm_up(writer, "k")
        reader.send(request("XREAD", "BLOCK", 0, "STREAMS", "k", "$"))
        until(lambda: b"blocked_clients:1\r\n" in admin.do("INFO", "clients"), "the reader")
        writer.send(run("k", "x", "y", "z"))
        first = writer.replies(3)[0]
        assert reader.reply() == [[b"k", [[first, [b"field", b"x"]]]]]


def test_whoever_is_told_of_changes_is_told_of_each(server: ServerProcess) -> None:
    with server.connect() as listener, server.connect() as writer:
        warm_up(writer, "k")
        listener.do("SUBSCRIBE", "__keyspace@0__:k")
        writer.do("CONFIG", "SET", "notify-keyspace-events", "Kt")
        warm_up(writer, "k")
        writer.send(run("k", "a", "b"))
        writer.replies(2)
        assert listener.replies(5) == [[b"message", b"__keyspace@0__:k", b"xadd"]] * 5


def test_a_transaction_that_watches_the_topic_is_spoilt(server: ServerProcess) -> None:
    with server.connect() as watcher, server.connect() as writer:
        warm_up(writer, "k")
        watcher.do("WATCH", "k")
        watcher.do("MULTI")
        watcher.do("SET", "other", "1")
        writer.do("XADD", "k", "*", "field", "a")
        assert watcher.do("EXEC") is None


def test_a_transaction_queues_them(server: ServerProcess) -> None:
    with server.connect() as peer:
        warm_up(peer, "k")
        peer.send(run("k", "a") + request("MULTI") + run("k", "b", "c") + request("EXEC"))
        replies = peer.replies(5)
        assert replies[1:4] == [b"OK", b"QUEUED", b"QUEUED"]
        assert [each for each, _ in entries(peer, "k")][-3:] == [replies[0], *replies[4]]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("XADD", "text", "*", "field"), b"WRONGTYPE"),
        (("XADD", "k", "*", "a", "b"), b"ERR wrong number of arguments"),
        (("XADD", "k", "0-0", "field"), b"ERR The ID specified in XADD must be greater than 0-0"),
        (("XADD", "k", "1-1", "field"), b"ERR The ID specified in XADD is equal or smaller"),
    ],
)
def test_a_run_that_is_wrong_is_refused_one_by_one(
    server: ServerProcess, words: tuple[str, ...], refusal: bytes
) -> None:
    with server.connect() as peer:
        peer.do("SET", "text", "1")
        warm_up(peer, "k")
        for _ in range(3):
            peer.send(request(*words, "a") + request(*words, "b"))
            assert all(str(reply).encode().startswith(refusal) for reply in peer.replies(2))
        assert peer.do("XLEN", "k") == 3


def test_the_last_ids_there_are_are_given_and_then_no_more(server: ServerProcess) -> None:
    top = 2**64 - 1
    with server.connect() as peer:
        peer.do("XADD", "k", f"{top}-{top - 2}", "field", "a")
        peer.send(run("k", "b", "c") + run("k", "d", "e"))
        replies = peer.replies(4)
        assert replies[:2] == [b"%d-%d" % (top, top - 1), b"%d-%d" % (top, top)]
        assert all("exhausted the last possible ID" in str(reply) for reply in replies[2:])


def test_all_replies_of_a_run_are_taken_back_where_the_turn_can_not_be_committed() -> None:
    session = Session(1, Hub(lambda counts: None))
    replies = answers(b"$3\r\n1-0\r\n$3\r\n1-1\r\n", 2)
    session.said += [b"+OK\r\n", replies, b":1\r\n"]
    take_back([(session, replies)], StoreUnwritable(Path("data.mdb"), "No space left on device"))
    assert session.said[0::2] == [b"+OK\r\n", b":1\r\n"]
    assert session.said[1].count(b"\r\n") == session.said[1].count(b"-MISCONF ") == 2


def test_reply_of_the_same_bytes_that_acknowledges_nothing_is_not_taken_back() -> None:
    session = Session(1, Hub(lambda counts: None))
    ok = b"+OK\r\n"
    session.said += [ok, b"+QUEUED\r\n", b"*2\r\n", ok, b":1\r\n"]
    take_back([(session, ok), (session, session.said[4])], StoreUnwritable(Path("data.mdb"), "No space left on device"))
    assert [part[:8] for part in session.said] == [ok, b"+QUEUED\r", b"*2\r\n", b"-MISCONF", b"-MISCONF"]


def test_acknowledged_runs_are_there_after_kill_9(serve: Serve) -> None:
    server = serve()
    with server.connect() as peer:
        warm_up(peer, "k")
        peer.send(run("k", *map(str, range(5000))))
        ids = peer.replies(2500)
        server.process.kill()
    server.process.wait()
    with serve().connect() as peer:
        there = [each for each, _ in entries(peer, "k")]
        assert there[3 : 3 + len(ids)] == ids
