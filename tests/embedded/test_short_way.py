"""A command takes a short way through redis-py: what it answers, raises and leaves behind is what the long one does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import rlite_pubsub
from rlite_pubsub.embedded.connection import Pool, StoreConnection

COMMANDS: list[tuple[Any, ...]] = [
    ("SET", "key", "value"),
    ("SET", "key", "gr\xfcn", "GET"),
    ("GET", "key"),
    ("get", "missing"),
    ("SET", "number", 12),
    ("INCRBY", "number", 1.5),
    ("LPUSH", "list", "a", "b"),
    ("LRANGE", "list", 0, -1),
    ("GET", "list"),
    ("HSET", "hash", "field", "value"),
    ("NO SUCH", "command"),
    ("CONFIG GET", "appendfsync"),
    ("CLIENT", "SETNAME", "me"),
    ("CLIENT GETNAME",),
    ("XADD", "topic", "1-1", "field", "value"),
    ("XRANGE", "topic", "-", "+"),
    ("EXISTS", "key", "list", "topic"),
    ("ECHO", None),
    ("ECHO", [1]),
    ("SET", "key"),
    ("BLPOP", "list", 1),
    ("BLPOP", "nothing", 0.01),
    ("MULTI",),
    ("INCR", "list"),
    ("INCR", "number"),
    ("EXEC",),
    ("PING",),
    ("HELLO", 9),
    ("QUIT",),
    ("SET", "binary", b"\xff"),
    ("GET", "binary"),
    ("PING",),
]


class Counter:
    """How many commands went the short way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        answer = StoreConnection.answer

        def counted(connection: StoreConnection, client: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
            self.count += 1
            return answer(connection, client, args, options)

        monkeypatch.setattr(StoreConnection, "answer", counted)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Counter:
    return Counter(monkeypatch)


@pytest.fixture(params=[False, True], ids=["bytes", "text"])
def opened(folder: Path, protocol: int, request: pytest.FixtureRequest) -> Iterator[rlite_pubsub.Redis]:
    with rlite_pubsub.Redis(folder, protocol=protocol, decode_responses=request.param) as client:
        client.ping()
        yield client


def outcome(client: rlite_pubsub.Redis, command: tuple[Any, ...]) -> str:
    try:
        return repr(client.execute_command(*command))
    except (redis.RedisError, UnicodeDecodeError) as error:
        return f"{type(error)}: {error}"


def test_every_reply_and_error_is_that_of_the_long_way(
    opened: rlite_pubsub.Redis, short: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = [outcome(opened, command) for command in COMMANDS]
    assert short.count >= len(COMMANDS) - 2  # all but the one after QUIT, and the one after what is no text
    opened.flushall()
    opened.connection_pool.disconnect()
    monkeypatch.setattr(Pool, "take", lambda pool: None)
    there = [outcome(opened, command) for command in COMMANDS]
    assert here == there


def test_methods_answer_as_on_the_long_way(
    opened: rlite_pubsub.Redis, short: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask() -> list[object]:
        return [
            opened.set("key", "value"),
            opened.set("key", "other", nx=True),
            opened.set("key", "other", get=True),
            opened.set("key", "value", 100),
            opened.ttl("key"),
            opened.get("key"),
            opened.dump("key"),
            opened.mget(["key", "none"]),
            opened.rpush("list", 1, "b"),
            opened.lrange("list", 0, -1),
            opened.info("server")["redis_version"],
            opened.config_get("appendfsync"),
            opened.delete("key", "list"),
        ]

    here = ask()
    assert short.count == 13
    monkeypatch.setattr(Pool, "take", lambda pool: None)
    assert ask() == here


def test_a_connection_that_was_killed_is_made_anew(folder: Path, short: Counter) -> None:
    with rlite_pubsub.Redis(folder) as client, rlite_pubsub.Redis(folder) as other:
        first = client.client_id()
        other.client_kill_filter(_id=str(first))
        assert client.client_id() != first
        assert client.ping()


def test_a_connection_that_is_killed_by_its_own_command_is_tried_again(folder: Path, short: Counter) -> None:
    for retries in (0, 3):
        with rlite_pubsub.Redis(folder, retry=Retry(NoBackoff(), retries)) as client:
            client.ping()
            kill = ("CLIENT", "KILL", "SKIPME", "no", "TYPE", "normal")
            assert client.execute_command(*kill) >= 1
            assert client.ping()


def test_who_waits_for_a_reply_is_woken_by_another_thread(folder: Path, short: Counter) -> None:
    with rlite_pubsub.Redis(folder) as client:
        client.ping()
        found: list[object] = []
        waiting = threading.Thread(target=lambda: found.append(client.blpop("list", 20)))
        waiting.start()
        deadline = time.monotonic() + 20
        while client.info("clients")["blocked_clients"] != 1:
            assert time.monotonic() < deadline
        client.rpush("list", "x")
        waiting.join(20)
        assert found == [(b"list", b"x")]


def test_who_waits_too_long_for_a_reply_is_told_so_and_its_connection_is_closed(folder: Path, short: Counter) -> None:
    with rlite_pubsub.Redis(folder, socket_timeout=0.05, retry=Retry(NoBackoff(), 1)) as client:
        client.client_setname("before")
        with pytest.raises(redis.TimeoutError):
            client.blpop("list", 5)
        assert short.count == 1
        assert client.client_getname() is None


def test_many_threads_have_connections_of_their_own(folder: Path) -> None:
    with rlite_pubsub.Redis(folder) as client:
        wrong: list[object] = []

        def work(number: int) -> None:
            for step in range(200):
                client.set(f"key:{number}", step)
                if client.get(f"key:{number}") != b"%d" % step:
                    wrong.append((number, step))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        pool = client.connection_pool
        assert not pool._in_use_connections
        assert len(pool._available_connections) == pool._created_connections <= 8


@pytest.mark.parametrize("options", [{"health_check_interval": 1}, {"single_connection_client": True}])
def test_what_is_not_as_usual_is_left_to_redis_py(folder: Path, short: Counter, options: dict[str, Any]) -> None:
    with rlite_pubsub.Redis(folder, **options) as client:
        for _ in range(3):
            assert client.ping()
        assert short.count == 0
