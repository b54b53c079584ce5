"""TOPIC.CONSUME at sockets: what was given, acknowledged and taken over is so across processes, a kill -9 included."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from patience import until
from peer import Peer, request
from server_process import Serve, ServerProcess

SMALL_BUFFER = 32 * 1024


def make_group(peer: Peer) -> None:
    assert peer.do("XGROUP", "CREATE", "t", "g", "$", "MKSTREAM") == b"OK"


def consume(peer: Peer, credit: int, consumer: str = "c") -> None:
    assert peer.do("TOPIC.CONSUME", "t", "g", consumer, "CREDIT", credit) == b"OK"


def add(peer: Peer, entry_id: str = "*", value: str = "v") -> bytes:
    reply = peer.do("XADD", "t", entry_id, "f", value)
    assert isinstance(reply, bytes), reply
    return reply


def ids(push: Any, consumer: bytes = b"c") -> list[bytes]:
    assert push[:4] == [b"topic-entries", b"t", b"g", consumer], push
    return [entry[0] for entry in push[4]]


def pending(peer: Peer) -> int:
    count = peer.do("XPENDING", "t", "g")[0]
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("protocol", [2, 3])
def test_a_consumer_acknowledges_over_the_connection_that_it_is_pushed_to(server: ServerProcess, protocol: int) -> None:
    consumer, writer = server.connect(protocol=protocol), server.connect()
    make_group(writer)
    consume(consumer, 1)
    new = [add(writer) for _ in range(3)]
    assert ids(consumer.reply()) == new[:1]
    for done, following in zip(new, new[1:], strict=False):
        consumer.send(request("XACK", "t", "g", done))
        replies = [consumer.reply(), consumer.reply()]
        assert 1 in replies
        assert [ids(push) for push in replies if push != 1] == [[following]]
    consume(consumer, 0)
    assert consumer.do("XACK", "t", "g", new[2]) == 1
    later = add(writer)
    assert consumer.do("PING") == b"PONG"  # and nothing before it
    assert pending(writer) == 0
    consume(consumer, 1)
    assert ids(consumer.reply()) == [later]


def test_an_acknowledgement_by_another_process_gives_credit_back(serve: Serve, tmp_path: Path) -> None:
    first, second = serve(), serve()
    consumer, other = first.connect(), second.connect()
    make_group(other)
    consume(consumer, 1)
    new = [add(other), add(other)]
    assert ids(consumer.reply()) == new[:1]
    assert other.do("XACK", "t", "g", new[0]) == 1
    assert ids(consumer.reply()) == new[1:]
    assert other.do("XCLAIM", "t", "g", "elsewhere", 0, new[1]) != []
    third = add(other)
    assert ids(consumer.reply()) == [third]


def test_a_consumer_out_of_credit_leaves_entries_to_a_reader_that_waits_in_another_process(serve: Serve) -> None:
    first, second = serve(), serve()
    consumer, reader, writer = first.connect(), second.connect(), first.connect()
    make_group(writer)
    consume(consumer, 2)
    given = [add(writer)]
    assert ids(consumer.reply()) == given
    given.append(add(writer))
    assert ids(consumer.reply()) == given[1:]
    for _ in range(20):
        reader.send(request("XREADGROUP", "GROUP", "g", "r", "BLOCK", 0, "STREAMS", "t", ">"))
        left = add(writer)
        assert [entry[0] for entry in reader.reply()[0][1]] == [left]
    assert writer.do("XPENDING", "t", "g")[3] == [[b"c", b"2"], [b"r", b"20"]]


def test_each_entry_goes_to_one_of_consumers_in_two_processes(serve: Serve) -> None:
    first, second = serve(), serve()
    writer = first.connect()
    make_group(writer)
    peers = {b"a": first.connect(), b"b": second.connect()}
    for name, peer in peers.items():
        consume(peer, 300, name.decode())
    new = [add(writer) for _ in range(500)]
    until(lambda: pending(writer) == 500, "all are given")
    found = []
    for name, count in writer.do("XPENDING", "t", "g")[3]:
        assert int(count) <= 300
        of_one: list[bytes] = []
        while len(of_one) < int(count):
            of_one += ids(peers[name].reply(), name)
        assert of_one == sorted(of_one, key=new.index)
        found += of_one
    assert sorted(found) == sorted(new)


def test_a_stalled_consumer_is_not_given_more_though_it_has_credit(server: ServerProcess) -> None:
    consumer = server.connect(receive_buffer_bytes=SMALL_BUFFER)
    other = server.connect()
    make_group(other)
    consume(consumer, 100_000)
    sent: list[bytes] = []
    given = -1
    while pending(other) != given:  # it stalls
        given = pending(other)
        sent += [add(other, value="." * 50_000) for _ in range(100)]
    assert given < len(sent)
    stalled_at = pending(other)
    assert other.do("XACK", "t", "g", *sent[:stalled_at]) == stalled_at
    sent += [add(other) for _ in range(10)]
    assert pending(other) == 0
    received: list[bytes] = []
    while len(received) < len(sent):
        received += ids(consumer.reply())
    assert received == sent


def test_a_stalled_consumer_never_has_more_in_flight_than_its_credit(server: ServerProcess) -> None:
    consumer, other = server.connect(receive_buffer_bytes=SMALL_BUFFER), server.connect()
    make_group(other)
    consume(consumer, 7)
    new = [add(other, value="." * 100_000) for _ in range(60)]
    received: list[bytes] = []
    while len(received) < len(new):
        assert pending(other) <= 7
        batch = ids(consumer.reply())
        received += batch
        assert pending(other) <= 7
        assert other.do("XACK", "t", "g", *batch) == len(batch)
    assert received == new


_CONSUMER = """
import sys
from rlite_pubsub import topics
with topics.consume(sys.argv[1], "t", "g", "killed", credit=3) as consumption:
    for entry in consumption:
        print(entry.id, flush=True)
"""


def test_what_a_killed_consumer_had_stays_pending_until_its_time_is_over(server: ServerProcess) -> None:
    other = server.connect()
    make_group(other)
    assert other.do("TOPIC.GROUP", "t", "g", "TIMEOUT", 3_600_000) == b"OK"
    new = [add(other) for _ in range(5)]
    with subprocess.Popen(
        [sys.executable, "-c", _CONSUMER, f"redis://127.0.0.1:{server.port}"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert [process.stdout.readline().strip() for _ in range(3)] == new[:3]
        process.send_signal(signal.SIGKILL)
    heir = server.connect()
    consume(heir, 10, "heir")
    assert ids(heir.reply(), b"heir") == new[3:]
    assert other.do("XPENDING", "t", "g")[3] == [[b"heir", b"2"], [b"killed", b"3"]]
    other.do("TOPIC.GROUP", "t", "g", "TIMEOUT", 1)
    received: set[bytes] = set()
    while not received >= set(new[:3]):
        received |= set(ids(heir.reply(), b"heir"))


def test_what_was_pushed_is_pending_after_a_kill_of_the_server(serve: Serve) -> None:
    server = serve()
    consumer, writer = server.connect(), server.connect()
    make_group(writer)
    consume(consumer, 2)
    new = [add(writer), add(writer), add(writer)]
    assert ids(consumer.reply()) + ids(consumer.reply()) == new[:2]
    server.end(signal.SIGKILL)
    again = serve()
    consumer = again.connect()
    assert pending(consumer) == 2
    consume(consumer, 2)
    assert consumer.do("XACK", "t", "g", new[0]) == 1
    assert ids(consumer.reply()) == new[2:]
