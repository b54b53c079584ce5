"""Servers that keep topics: rules from the file, retained channels the short way, trimming that is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hiredis
import pytest
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess


def info(peer: Peer, name: str) -> dict[bytes, Any]:
    found = peer.do("TOPIC.INFO", name)
    assert isinstance(found, list), found
    return dict(zip(found[::2], found[1::2], strict=True))


def publish(peer: Peer, name: str, payloads: list[bytes]) -> list[Any]:
    """In one pipeline; the replies."""
    peer.send(b"".join([request("PUBLISH", name, payload) for payload in payloads]))
    return peer.replies(len(payloads))


def publish_surely(peer: Peer, name: str, payloads: list[bytes]) -> None:
    """What was refused is published once more."""
    while payloads:
        replies = publish(peer, name, payloads)
        payloads = [payload for payload, reply in zip(payloads, replies, strict=True) if not isinstance(reply, int)]


def entries(peer: Peer, name: str, page: int = 10_000) -> Iterator[tuple[bytes, bytes]]:
    """(id, payload) of all entries, by pages."""
    start = "-"
    while found := peer.do("XRANGE", name, start, "+", "COUNT", page):
        for entry_id, fields in found:
            assert fields[0] == b"message"
            yield entry_id, fields[1]
        start = "(" + found[-1][0].decode()


@pytest.fixture
def peer(serve: Serve) -> Peer:
    return serve("--retain", "orders.* 7d").connect()


def test_pipeline_to_a_retained_channel_is_all_in_the_topic_in_order(peer: Peer) -> None:
    payloads = [b"%d:" % number + b"x" * (number % 300) for number in range(20_000)]
    publish_surely(peer, "orders.1", payloads)
    assert sorted(payload for _, payload in entries(peer, "orders.1")) == sorted(payloads)
    assert publish(peer, "orders.2", [b"a", b"b", b"c"]) == [0, 0, 0]
    assert [payload for _, payload in entries(peer, "orders.2")] == [b"a", b"b", b"c"]


def test_retained_and_other_channels_in_one_pipeline_are_told_apart(peer: Peer) -> None:
    names = ["orders.1", "news", "orders.2", "orders.1", "orders.1", "news", "news", "orders.1"]
    peer.send(b"".join([request("PUBLISH", name, f"{place}") for place, name in enumerate(names)]))
    assert peer.replies(len(names)) == [0] * len(names)
    assert [payload for _, payload in entries(peer, "orders.1")] == [b"0", b"3", b"4", b"7"]
    assert [payload for _, payload in entries(peer, "orders.2")] == [b"2"]
    assert peer.do("EXISTS", "news") == 0


def test_subscribers_hear_what_they_always_heard(serve: Serve) -> None:
    server = serve("--retain", "orders.* 7d")
    subscriber, publisher = server.connect(), server.connect()
    subscriber.do("SUBSCRIBE", "orders.1")
    assert publish(publisher, "orders.1", [b"a", b"b"]) == [1, 1]
    assert subscriber.replies(2) == [[b"message", b"orders.1", b"a"], [b"message", b"orders.1", b"b"]]


def test_blocked_reader_is_woken_by_a_publish(serve: Serve) -> None:
    server = serve("--retain", "orders.* 7d")
    reader, publisher = server.connect(), server.connect()
    reader.send(request("XREAD", "BLOCK", 0, "STREAMS", "orders.1", "$"))
    until(lambda: b"cmd=xread" in publisher.do("CLIENT", "LIST"), "the reader")
    publish(publisher, "orders.1", [b"a"])
    [[name, [[_, fields]]]] = reader.reply()
    assert (name, fields) == (b"orders.1", [b"message", b"a"])


def test_rules_of_one_server_hold_for_another_at_once_and_after_a_restart(serve: Serve) -> None:
    first, second = serve(), serve()
    one, other = first.connect(), second.connect()
    assert publish(other, "orders.1", [b"before"]) == [0]
    assert one.do("CONFIG", "SET", "retain", "orders.* 7d") == b"OK"
    assert publish(other, "orders.1", [b"after"]) == [0]
    assert [payload for _, payload in entries(one, "orders.1")] == [b"after"]
    assert other.do("CONFIG", "GET", "retain") == [b"retain", b"orders.* 7d"]
    for server in (first, second):
        server.end()
    third = serve().connect()
    assert third.do("CONFIG", "GET", "retain") == [b"retain", b"orders.* 7d"]
    assert publish(third, "orders.1", [b"later"]) == [0]
    assert [payload for _, payload in entries(third, "orders.1")] == [b"after", b"later"]


def test_config_file_says_the_rules_and_none_takes_them_back(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "server.conf"
    file.write_text('retain "orders.*" 7d\nretain "logs.*" 2 entries 1gb\n')
    server = serve("--include", str(file))
    peer = server.connect()
    assert peer.do("CONFIG", "GET", "retain") == [b"retain", b"orders.* 7d ; logs.* 1gb 2 entries"]
    publish(peer, "logs.1", [b"%d" % number for number in range(10)])
    until(lambda: [payload for _, payload in entries(peer, "logs.1")] == [b"8", b"9"], "the trimming")
    server.end()
    peer = serve("--retain", "none").connect()
    assert peer.do("CONFIG", "GET", "retain") == [b"retain", b""]
    assert publish(peer, "orders.1", [b"x"]) == [0]
    assert peer.do("EXISTS", "orders.1") == 0


def test_age_length_and_bytes_are_enforced_while_it_is_written_to(serve: Serve) -> None:
    server = serve("--retain", "age 1s ; count 1000 entries ; size 100kb")
    peer = server.connect()
    for _ in range(30):
        for name in ("age", "count", "size"):
            publish_surely(peer, name, [b"x" * 100] * 500)
    until(lambda: info(peer, "age")[b"length"] == 0, "the end of an age")
    until(lambda: info(peer, "count")[b"length"] == 1000, "the trimming")
    until(lambda: info(peer, "size")[b"bytes"] <= 100 << 10, "the trimming")
    assert info(peer, "size")[b"bytes"] > 99 << 10
    assert info(peer, "count")[b"removed-entries"] == info(peer, "count")[b"entries-added"] - 1000


def killed_while_trimming(server: ServerProcess, count: int) -> int:
    """How many entries were left, as was seen last before the kill."""
    peer = server.connect()
    assert peer.do("TOPIC.CONFIG", "t", "SET", "RETAIN-LENGTH", 1000) == b"OK"
    left = count
    while left == count:
        left = info(peer, "t")[b"length"]
    server.end(signal.SIGKILL)
    return left


def test_kill_in_the_middle_of_trimming_a_million_entries_loses_and_doubles_nothing(serve: Serve) -> None:
    count = 1_000_000
    server = serve("--retain", "t 7d")
    peer = server.connect()
    batch = [b"x" * 20] * 5000
    for _ in range(count // len(batch)):
        publish_surely(peer, "t", batch)
    last = info(peer, "t")[b"last-id"]
    left = killed_while_trimming(server, count)
    assert 1000 < left < count

    peer = serve().connect()
    found = info(peer, "t")
    assert found[b"length"] + found[b"removed-entries"] == found[b"entries-added"] == count
    until(lambda: info(peer, "t")[b"length"] == 1000, "the rest of the trimming")
    found = info(peer, "t")
    kept = [entry_id for entry_id, _ in entries(peer, "t")]
    assert len(kept) == 1000 and kept[-1] == found[b"last-id"] == last
    assert kept[0] == found[b"earliest-id"]
    assert found[b"removed-entries"] == found[b"trimmed-entries"] == count - 1000


def test_every_publish_that_was_answered_is_an_entry_after_a_kill(serve: Serve) -> None:
    server = serve("--retain", "t 7d")
    peer = server.connect()
    answered = 0
    for start in range(0, 20_000, 50):
        if start == 10_000:
            peer.send(b"".join([request("PUBLISH", "t", f"{number}") for number in range(start, start + 5000)]))
            answered += len([reply for reply in peer.replies(200) if reply == 0])
            server.end(signal.SIGKILL)
            break
        replies = publish(peer, "t", [b"%d" % number for number in range(start, start + 50)])
        assert replies == [0] * 50
        answered += 50
    payloads = [payload for _, payload in entries(serve().connect(), "t")]
    assert payloads == [b"%d" % number for number in range(len(payloads))]
    assert answered <= len(payloads)


def test_publisher_is_told_where_the_store_is_full(serve: Serve) -> None:
    server = serve("--retain", "t 7d", "--store-quota", "2mb")
    peer = server.connect()
    payloads = [b"x" * 1000] * 500
    refused: list[Any] = []
    while not refused:
        refused = [reply for reply in publish(peer, "t", payloads) if reply != 0]
    assert isinstance(refused[0], hiredis.ReplyError) and str(refused[0]).startswith("OOM")
    assert publish(peer, "other", [b"x"]) == [0]
    assert peer.do("TOPIC.CONFIG", "t", "SET", "RETAIN-LENGTH", 10) in (b"OK", None)
    until(lambda: info(peer, "t")[b"length"] == 10, "the trimming")
    until(lambda: publish(peer, "t", [b"x"]) == [0], "room")
