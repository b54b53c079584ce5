"""What does not last takes no memory that lasts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from peer import Peer, request
from server_process import ServerProcess
from store_view import look

import rlite_pubsub

MB = 1 << 20


def publish_one_offs(publisher: Peer, first: int, last: int) -> None:
    for start in range(first, last, 10_000):
        names = [f"one-off {number}" for number in range(start, start + 10_000)]
        publisher.send(b"".join([request("PUBLISH", name, "x") for name in names]))
        publisher.replies(10_000)


def test_million_one_off_names_grow_no_memory(server: ServerProcess) -> None:
    subscriber, publisher = server.connect(), server.connect()
    subscriber.do("PSUBSCRIBE", "nothing like that*")
    publish_one_offs(publisher, 0, 50_000)
    before = server.memory_bytes()
    publish_one_offs(publisher, 50_000, 1_000_000)
    assert server.memory_bytes() - before < 4 * MB


def test_long_one_off_names_grow_no_memory(server: ServerProcess) -> None:
    subscriber, publisher = server.connect(), server.connect()
    subscriber.do("PSUBSCRIBE", "*")
    subscriber.do("PUNSUBSCRIBE", "*")
    subscriber.do("PSUBSCRIBE", "nothing like that*")
    publisher.do("PUBLISH", b"n" * 100_000, "x")
    before = server.memory_bytes()
    for start in range(0, 2000, 100):
        names = [b"%d" % number + b"n" * 100_000 for number in range(start, start + 100)]
        publisher.send(b"".join([request("PUBLISH", name, "x") for name in names]))
        publisher.replies(100)
    assert server.memory_bytes() - before < 24 * MB


def test_100000_subscriptions_that_ended_leave_nothing(server: ServerProcess) -> None:
    peer = server.connect()

    def cycle(first: int, last: int) -> None:
        for start in range(first, last, 1000):
            names = [f"name {number}" for number in range(start, start + 1000)]
            peer.send(request("SUBSCRIBE", *names) + request("PSUBSCRIBE", *[name + "*" for name in names[:100]]))
            peer.replies(1100)
            peer.send(request("UNSUBSCRIBE", *names) + request("PUNSUBSCRIBE"))
            peer.replies(1100)

    cycle(0, 20_000)
    before = server.memory_bytes()
    cycle(20_000, 120_000)
    assert server.memory_bytes() - before < 4 * MB
    assert look(server.store_folder).has_no_names


def test_hostile_patterns_and_long_names_do_not_hang_the_server(server: ServerProcess) -> None:
    subscriber, publisher, other = server.connect(), server.connect(), server.connect()
    for pattern in (b"a*" * 1000 + b"b", b"*a" * 999 + b"*b", b"[a-z]*" * 1000 + b"!", b"?*" * 1000 + b"b"):
        subscriber.do("PSUBSCRIBE", pattern)
    publisher.send(request("PUBLISH", b"a" * 20_000, "x"))
    assert other.do("PING") == b"PONG"
    assert publisher.reply() == 0
    assert publisher.do("PUBLISH", b"a" * 20_000 + b"b", "x") == 3


def test_long_names_of_keys_that_are_not_there_do_not_grow_the_server(server: ServerProcess) -> None:
    with server.connect() as peer:

        def look_for(first: int, last: int) -> None:
            for number in range(first, last):
                assert peer.do("GET", b"%d" % number + b"n" * 100_000) is None
            assert peer.do("FLUSHALL") == b"OK"
            assert peer.do("MEMORY", "PURGE") == b"OK"

        look_for(0, 2000)
        before = server.own_memory_bytes()
        look_for(2000, 6000)
        assert server.own_memory_bytes() - before < 16 * MB


def test_purged_memory_goes_back_to_the_kernel(server: ServerProcess) -> None:
    with server.connect() as peer:
        peer.do("MEMORY", "PURGE")
        before = server.own_memory_bytes()
        with rlite_pubsub.Redis(server.store_folder) as other:
            other.set("k", "v")  # the server does not hold every key there is, and has to look
        for number in range(500):  # names that are cached, in blocks that malloc keeps for later
            peer.do("GET", b"%d" % number + b"n" * 100_000)
        assert server.own_memory_bytes() - before > 40 * MB
        peer.do("FLUSHALL")
        peer.do("MEMORY", "PURGE")
        assert server.own_memory_bytes() - before < 8 * MB


WATCHED = """
import gc, os, signal, sys, threading, time
from rlite_pubsub.cli.command_line import main

seen = []

def watch():
    while not gc.get_freeze_count():
        seen.append(gc.isenabled())
        time.sleep(0.001)
    while not gc.isenabled():
        time.sleep(0.001)
    print(len(seen) > 10 and not seen[-1], flush=True)
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=watch, daemon=True).start()
main(["serve", "--port", "0", "--unixsocket", sys.argv[1] + "/socket", "--dir", sys.argv[1]])
print(gc.isenabled())
"""


def test_collector_rests_until_the_server_has_begun_and_works_from_then_on(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WATCHED, str(tmp_path)], capture_output=True, text=True)
    assert [line for line in done.stdout.splitlines() if line in ("True", "False")] == ["True", "True"], done.stderr
