"""A replica whose master dies, or lies: what it has stays until there is something whole in its place."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import pytest
from lying_master import FULL, HISTORY, LyingMaster, rdb, strings, whole
from patience import until
from peer import request
from server_process import Serve, ServerProcess

from rlite_pubsub.protocol.rdb import envelope

LIBRARY = b"\xf5" + envelope.string(b"#!lua name=x\nnonsense")
MARK = b"m" * 40


def _say(data: bytes) -> Callable[[socket.socket], None]:
    return lambda peer: peer.sendall(data)


def _file(file: bytes, size: int | None = None) -> bytes:
    return FULL + b"$%d\r\n" % (len(file) if size is None else size) + file


FILE = rdb(strings(5000))

LIES = {
    "the file is cut": (_file(FILE[:40_000], len(FILE)), "too early"),
    "it has another size": (_file(FILE, len(FILE) - 5), "size it announced"),
    "its sum is wrong": (_file(FILE[:-1] + b"\x00"), "checksum"),
    "a value of an unknown type": (_file(rdb(strings(10) + b"\x63\x01k\x01v")), "a type"),
    "there is no mark behind it": (FULL + b"$EOF:" + MARK + b"\r\n" + FILE + b"x" * 40, "does not end where"),
    "a database that is not there": (_file(rdb(b"\xfe" + envelope.length(1 << 40) + strings(1))), "16 \\(databases"),
    "a string of 4 EB": (_file(rdb(b"\x00" + envelope.length(1 << 62))), "a string of 4611686018427387904"),
    "a fact of 2 GB": (_file(rdb(b"\xfa" + envelope.length(1 << 31))), "a string of 2147483648"),
    "a library without metadata": (_file(rdb(b"\xf5" + envelope.string(b"nonsense"))), "metadata"),
    "a library that does not run": (_file(rdb(LIBRARY)), "nonsense|syntax|unexpected|expected"),
    "an offset beyond all integers": (b"+FULLRESYNC %b %b\r\n" % (HISTORY, b"9" * 23) + b"$0\r\n", "answers PSYNC"),
    "a history of no length": (b"+FULLRESYNC x 0\r\n$0\r\n", "answers PSYNC"),
    "a file larger than the disk": (FULL + b"$999999999999999999\r\nREDIS0010", "No room"),
}


def _follow(server: ServerProcess, master: LyingMaster) -> None:
    with server.connect() as client:
        assert client.do("REPLICAOF", "127.0.0.1", master.port) == b"OK"


@pytest.mark.parametrize(("said", "why"), LIES.values(), ids=list(LIES))
def test_what_a_replica_has_outlives_a_master_that_lies(server: ServerProcess, said: bytes, why: str) -> None:
    import re

    with server.connect() as client, LyingMaster(_say(said)) as master:
        assert client.do("SET", "mine", 1) == b"OK"
        _follow(server, master)
        until(lambda: "is broken" in server.log(), "the word of the log")
        assert client.do("GET", "mine") == b"1"
        assert client.do("DBSIZE") == 1
        assert b"master_sync_in_progress:" in client.do("INFO", "replication")
        assert client.do("REPLICAOF", "NO", "ONE") == b"OK"
        assert client.do("SET", "mine", 2) == b"OK"
        assert client.do("DBSIZE") == 1
    assert re.search(why, server.log()), server.log()
    assert "Traceback" not in server.log()


def test_a_replica_answers_what_it_has_while_a_file_comes(server: ServerProcess) -> None:
    with server.connect() as client, LyingMaster(lambda peer: None) as master:

        def half(peer: socket.socket) -> None:
            peer.sendall(_file(FILE[:40_000], len(FILE)))
            peer.recv(1)

        master.say = half
        client.do("SET", "mine", 1)
        _follow(server, master)
        until(lambda: b"master_sync_in_progress:1" in client.do("INFO", "replication"), "the file")
        assert client.do("GET", "mine") == b"1"
        assert client.do("REPLICAOF", "NO", "ONE") == b"OK"
        assert client.do("GET", "mine") == b"1"


def test_a_replica_killed_while_its_keys_are_replaced_recovers(serve: Serve) -> None:
    file = rdb(strings(60_000))
    server = serve()
    with LyingMaster(whole(file)) as master:
        with server.connect() as client:
            client.do("SET", "mine", 1)
            _follow(server, master)
            until(lambda: str(client.do("GET", "mine")).startswith("LOADING"), "the replacing")
        server.end(signal.SIGKILL)
        server = serve("--replicaof", "127.0.0.1", str(master.port))
        with server.connect() as client:
            until(lambda: client.do("DBSIZE") == 60_000, "the master's keys")


def test_a_half_replaced_store_can_be_promoted(serve: Serve) -> None:
    server = serve()
    with LyingMaster(whole(rdb(strings(60_000)))) as master, server.connect() as client:
        _follow(server, master)
        until(lambda: str(client.do("GET", "mine")).startswith("LOADING"), "the replacing")
        assert client.do("REPLICAOF", "NO", "ONE") == b"OK"
        assert client.do("SET", "mine", 2) == b"OK"
        assert client.do("GET", "mine") == b"2"
        until(lambda: "in the middle of replacing" in server.log(), "the word of the log")


def test_a_master_s_pause_holds_what_it_says_next(server: ServerProcess) -> None:
    stream = request("CLIENT", "PAUSE", 300) + request("SET", "after", 1)
    with LyingMaster(whole(rdb(), stream)) as master:
        _follow(server, master)
        with server.connect() as client:
            until(lambda: client.do("GET", "after") == b"1", "what stands behind the pause")
    assert "Traceback" not in server.log()
