"""MIGRATE between two servers, as real processes. compat_tests/test_dump_restore.py has it with redis-server."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from hostile_server import HostileServer, endless
from patience import PATIENCE_S, until
from peer import request
from server_process import Serve, ServerProcess


@pytest.fixture
def here(server: ServerProcess) -> redis.Redis:
    return redis.Redis(port=server.port)


@pytest.fixture
def other(serve: Serve, tmp_path: Path) -> ServerProcess:
    folder = tmp_path / "other"
    folder.mkdir()
    return serve(folder=folder)


@pytest.fixture
def there(other: ServerProcess) -> redis.Redis:
    return redis.Redis(port=other.port)


def fill(client: redis.Redis) -> list[str]:
    client.set("string", "value", px=100_000)
    client.rpush("list", *range(300))
    client.sadd("set", *range(300))
    client.hset("hash", mapping={str(number): number for number in range(300)})
    client.zadd("sorted", {str(number): number for number in range(300)})
    client.xadd("stream", {"a": "b"}, id="1-1")
    return ["string", "list", "set", "hash", "sorted", "stream"]


def test_keys_of_all_types_arrive_and_are_gone_here(
    here: redis.Redis, there: redis.Redis, other: ServerProcess
) -> None:
    names = fill(here)
    before = {name: here.dump(name) for name in names}
    assert here.execute_command("MIGRATE", "127.0.0.1", other.port, "", 3, 5000, "KEYS", *names, "missing") == b"OK"
    assert here.dbsize() == 0
    arrived = redis.Redis(port=other.port, db=3)
    assert {name: arrived.dump(name) for name in names} == before
    assert 0 < arrived.pttl("string") <= 100_000
    assert there.dbsize() == 0


def test_what_is_not_there_is_told(here: redis.Redis, other: ServerProcess) -> None:
    assert here.migrate("127.0.0.1", other.port, ["missing"], 0, 1000) == b"NOKEY"


def test_a_copy_stays_and_nothing_is_overwritten_unasked(
    here: redis.Redis, there: redis.Redis, other: ServerProcess
) -> None:
    here.set("a", "mine")
    there.set("a", "theirs")
    with pytest.raises(redis.ResponseError, match="Target instance replied with error: BUSYKEY"):
        here.migrate("127.0.0.1", other.port, ["a"], 0, 1000)
    assert (here.get("a"), there.get("a")) == (b"mine", b"theirs")
    assert here.migrate("127.0.0.1", other.port, ["a"], 0, 1000, copy=True, replace=True) == b"OK"
    assert (here.get("a"), there.get("a")) == (b"mine", b"mine")


def test_a_part_that_arrived_is_gone_and_the_rest_stays(
    here: redis.Redis, there: redis.Redis, other: ServerProcess
) -> None:
    here.mset({"a": 1, "b": 2, "c": 3})
    there.set("b", "theirs")
    with pytest.raises(redis.ResponseError, match="BUSYKEY"):
        here.migrate("127.0.0.1", other.port, ["a", "b", "c"], 0, 1000)
    assert here.keys() == [b"b"]
    assert there.mget("a", "b", "c") == [b"1", b"theirs", b"3"]


def test_who_must_log_in_does_and_the_password_is_shown_nowhere(
    here: redis.Redis, there: redis.Redis, other: ServerProcess
) -> None:
    here.config_set("slowlog-log-slower-than", 0)
    here.set("a", "1")
    there.config_set("requirepass", "Secret")
    with pytest.raises(redis.ResponseError, match="NOAUTH"):
        here.migrate("127.0.0.1", other.port, ["a"], 0, 1000)
    with here.monitor() as monitor:
        assert here.migrate("127.0.0.1", other.port, ["a"], 0, 1000, auth="Secret") == b"OK"
        shown = next(line["command"] for line in monitor.listen() if line["command"].startswith("MIGRATE"))
    assert "(redacted)" in shown and "Secret" not in shown
    assert b"Secret" not in b"".join(entry["command"] for entry in here.slowlog_get())
    logged_in = redis.Redis(port=other.port, password="Secret")
    assert logged_in.get("a") == b"1"
    here.set("b", "2")
    order = "MIGRATE", "127.0.0.1", other.port, "b", 0, 1000, "AUTH2", "default", "Secret"
    assert here.execute_command(*order) == b"OK"


def test_nobody_else_waits_for_a_target_that_is_silent(here: redis.Redis, server: ServerProcess) -> None:
    here.set("a", "1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        errors: list[str] = []

        def move() -> None:
            try:
                redis.Redis(port=server.port).migrate("127.0.0.1", silent.getsockname()[1], ["a"], 0, 3000)
            except redis.ResponseError as error:
                errors.append(str(error))

        mover = threading.Thread(target=move)
        mover.start()
        until(lambda: any(client["cmd"] == "migrate" for client in here.client_list()), "the move to begin")
        assert here.incr("others") == 1
        assert not errors
        mover.join(PATIENCE_S)
    assert errors == ["IOERR error or timeout reading to target instance"]
    assert here.get("a") == b"1"


def test_what_is_changed_meanwhile_stays(here: redis.Redis, server: ServerProcess) -> None:
    here.mset({"a": 1, "b": 2})
    with socket.create_server(("127.0.0.1", 0)) as target:
        errors: list[str] = []

        def move() -> None:
            try:
                redis.Redis(port=server.port).migrate("127.0.0.1", target.getsockname()[1], ["a", "b"], 0, 60_000)
            except redis.ResponseError as error:
                errors.append(str(error))

        mover = threading.Thread(target=move)
        mover.start()
        peer, _ = target.accept()
        with peer:
            received = b""
            while received.count(b"RESTORE") < 2:
                received += peer.recv(65536)
            here.set("a", "changed")
            peer.sendall(b"+OK\r\n+OK\r\n+OK\r\n")
            mover.join(PATIENCE_S)
    assert errors == ["'a' was changed while it was moved, and stays: the target instance has it as it was"]
    assert here.mget("a", "b") == [b"changed", None]


def test_inside_a_transaction_it_is_done_at_once(here: redis.Redis, there: redis.Redis, other: ServerProcess) -> None:
    here.set("a", "1")
    with here.pipeline(transaction=True) as pipeline:
        pipeline.execute_command("MIGRATE", "127.0.0.1", other.port, "a", 0, 1000)
        pipeline.exists("a")
        assert pipeline.execute() == [b"OK", 0]
    assert there.get("a") == b"1"


def test_a_target_that_is_not_there_is_told(here: redis.Redis) -> None:
    here.set("a", "1")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(redis.ResponseError, match="IOERR error or timeout writing to target instance"):
        here.migrate("127.0.0.1", port, ["a"], 0, 1000)
    with pytest.raises(redis.ResponseError, match="the key argument must be set to the empty string"):
        here.execute_command("MIGRATE", "127.0.0.1", port, "a", 0, 1000, "KEYS", "b")
    with pytest.raises(redis.ResponseError, match="syntax error"):
        here.execute_command("MIGRATE", "127.0.0.1", port, "a", 0, 1000, "AUTH")
    assert here.get("a") == b"1"


SPOKEN = {
    "an endless string": endless(b"+OK\r\n$400000000000\r\n"),
    "an endless line": endless(b"+"),
    "more elements than there is memory": endless(b"+OK\r\n*4294967295\r\n", b"", 0),
    "depths": endless(b"+OK\r\n", b"*1\r\n" * 1000),
    "another protocol": endless(b"HTTP/1.1 200 OK\r\n\r\n", b"", 0),
}


@pytest.mark.parametrize("answer", SPOKEN.values(), ids=list(SPOKEN))
def test_a_target_that_says_more_than_a_line_is_left_and_the_key_stays(
    here: redis.Redis, server: ServerProcess, answer: Callable[[socket.socket], None]
) -> None:
    here.set("a", "1")
    server.forget_peak()
    before = server.peak_memory_bytes()
    with HostileServer(answer) as target, pytest.raises(redis.ResponseError, match="IOERR error or timeout reading"):
        here.migrate("127.0.0.1", target.port, ["a"], 0, 60_000)
    assert here.get("a") == b"1"
    assert server.peak_memory_bytes() - before < 64 << 20
    assert "Traceback" not in server.log()


def test_the_timeout_is_for_an_answer_and_not_for_each_byte_of_it(server: ServerProcess) -> None:
    dripped: list[bytes] = []
    is_over = threading.Event()

    def drip(peer: socket.socket) -> None:
        peer.recv(1 << 16)
        while not is_over.wait(0.3):
            peer.sendall(b"O" if dripped else b"+")
            dripped.append(b"O")

    with server.connect() as client, HostileServer(drip) as target:
        client.do("SET", "a", 1)
        client.send(request("MIGRATE", "127.0.0.1", target.port, "a", 0, 1000))
        until(lambda: select.select([client.socket], [], [], 0)[0] or len(dripped) > 30, "the answer")
        is_over.set()
        assert len(dripped) < 20
        assert "IOERR error or timeout reading" in str(client.reply())
        assert client.do("GET", "a") == b"1"
