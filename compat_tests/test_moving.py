"""Keys move from redis-server into a store and back, and the two have the same digest at each step."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from patience import until

from compat_tests.servers import REDIS_CLI, REDIS_SERVER, SocketServer

OURS = [sys.executable, "-m", "rlite_pubsub"]


def rlite(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*OURS, *map(str, words)], capture_output=True, text=True, timeout=120)


def fill(client: redis.Redis, seed: int = 1) -> None:
    """Keys of all types, small and large, in two databases."""
    dice = random.Random(seed)
    pipe = client.pipeline(transaction=False)
    for database in (0, 3):
        pipe.execute_command("SELECT", database)
        for i in range(600):
            pipe.set(f"s{i}", dice.choice([str(i), "x" * i, -5, 1 << 40]), ex=dice.choice([None, None, 1000]))
            pipe.rpush(f"l{i % 5}", *[dice.randbytes(dice.randrange(90)) for _ in range(3)])
            pipe.sadd("integers", i * 7)
            pipe.sadd(f"set{i % 5}", f"m{i}", i)
            pipe.hset(f"h{i % 30}", f"f{i}", dice.random())
            pipe.hset("large hash", f"f{i}", "x" * 70)
            pipe.zadd(f"z{i % 10}", {f"m{i}": dice.choice([i, i / 3, float("inf"), -1.5])})
            pipe.xadd(f"x{i % 5}", {"a": i, "b": "y" * (i % 60)}, id=f"{i + 1}-{i % 3}")
        pipe.xgroup_create("x1", "g", "0")
        pipe.xreadgroup("g", "c", {"x1": ">"}, count=20)
        pipe.xack("x1", "g", "2-1")
        pipe.xdel("x2", "3-2")
        pipe.pfadd("hll", *range(1000))
    pipe.function_load("#!lua name=lib\nredis.register_function('f', function(k, a) return 1 end)")
    pipe.execute_command("SELECT", 0)
    pipe.execute()


def digest(client: redis.Redis) -> str:
    return str(client.execute_command("DEBUG", "DIGEST"))


@contextmanager
def served(folder: Path) -> Iterator[redis.Redis]:
    """A server of ours on a store."""
    server = SocketServer("moved", [*OURS, "serve"], folder)
    try:
        with server.client() as client:
            yield client
    finally:
        server.stop()


@pytest.fixture
def source(tmp_path: Path) -> Iterator[SocketServer]:
    """A redis-server with something in it."""
    if REDIS_SERVER is None:
        pytest.skip("there is no redis-server")
    folder = tmp_path / "redis"
    folder.mkdir()
    server = SocketServer("redis", [REDIS_SERVER, "--save", "", "--appendonly", "yes"], folder)
    try:
        with server.client() as client:
            fill(client)
        yield server
    finally:
        server.stop()


def test_a_store_has_what_redis_had_and_a_redis_has_what_the_store_had(source: SocketServer, tmp_path: Path) -> None:
    with source.client() as client:
        client.save()
        expected = digest(client)
    files = {"rdb": tmp_path / "redis/dump.rdb", "aof": tmp_path / "redis/appendonlydir"}
    sources = {**files, "master": f"redis://localhost:{source.port}"}
    for name, where in sources.items():
        done = rlite("import", where, tmp_path / name)
        assert (done.returncode, done.stderr) == (0, ""), name
        with served(tmp_path / name) as client:
            assert digest(client) == expected, name
            assert client.fcall("f", 0) == 1

    back = tmp_path / "back"
    back.mkdir()
    done = rlite("export", tmp_path / "rdb", back / "dump.rdb")
    assert (done.returncode, done.stderr) == (0, "")
    assert REDIS_SERVER is not None
    server = SocketServer("back", [REDIS_SERVER], back)
    try:
        with server.client() as client:
            assert digest(client) == expected
            assert client.fcall("f", 0) == 1
    finally:
        server.stop()


def test_an_append_only_file_that_was_cut_is_loaded_up_to_there(source: SocketServer, tmp_path: Path) -> None:
    with source.client() as client:
        client.set("before", 1)
        with client.pipeline() as pipe:
            pipe.set("half", 1)
            pipe.set("half", 2)
            pipe.execute()
    source.stop()  # it may have put off writing until then
    (tail,) = (tmp_path / "redis/appendonlydir").glob("*.incr.aof")
    os.truncate(tail, tail.stat().st_size - 3)
    done = rlite("import", tmp_path / "redis/appendonlydir", tmp_path / "store")
    assert done.returncode == 0 and "ends within a request" in done.stderr
    with served(tmp_path / "store") as client:
        assert (client.get("before"), client.get("half")) == (b"1", None)


def test_an_import_that_fails_or_is_killed_leaves_no_store(source: SocketServer, tmp_path: Path) -> None:
    with source.client() as client:
        client.save()
    data = (tmp_path / "redis/dump.rdb").read_bytes()
    place, damaged = tmp_path / "stores", tmp_path / "damaged.rdb"
    place.mkdir()
    damaged.write_bytes(data[:-20] + bytes(20))
    done = rlite("import", damaged, place / "store")
    assert done.returncode == 1 and str(damaged) in done.stderr
    assert list(place.iterdir()) == []

    pipe = tmp_path / "pipe.rdb"
    os.mkfifo(pipe)
    process = subprocess.Popen([*OURS, "import", str(pipe), str(place / "store")])
    with open(pipe, "wb") as writer:
        writer.write(data[: len(data) // 2])
        writer.flush()
        until(lambda: any(place.glob(".store.importing-*/data.mdb")), "the import has begun")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (place / "store").exists()
    assert rlite("import", tmp_path / "redis/dump.rdb", place / "store").returncode == 0
    assert [each.name for each in place.iterdir()] == ["store"], "what the killed one had left is gone"


def test_a_store_that_is_there_is_added_to_only_if_that_is_said(source: SocketServer, tmp_path: Path) -> None:
    with source.client() as client:
        client.flushall()
        client.mset({"a": 1, "b": 2})
        client.save()
    dump = tmp_path / "redis/dump.rdb"
    with served_once(tmp_path / "store") as client:
        client.mset({"b": "mine", "c": 3})
    done = rlite("import", dump, tmp_path / "store")
    assert done.returncode == 1 and "--merge" in done.stderr
    assert rlite("import", "--merge", dump, tmp_path / "store").returncode == 0
    with served(tmp_path / "store") as client:
        assert client.mget("a", "b", "c") == [b"1", b"2", b"3"]


@contextmanager
def served_once(folder: Path) -> Iterator[redis.Redis]:
    folder.mkdir()
    with served(folder) as client:
        yield client


def test_what_has_expired_meanwhile_is_left_out(source: SocketServer, tmp_path: Path) -> None:
    with source.client() as client:
        client.flushall()
        client.set("gone", 1, px=1)
        client.set("stays", 1, ex=1000)
        client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        client.set("soon", 1, px=300)
        client.save()
    time.sleep(0.3)
    done = rlite("import", tmp_path / "redis/dump.rdb", tmp_path / "store")
    assert done.returncode == 0 and "had expired" in done.stdout
    with served(tmp_path / "store") as client:
        assert client.keys() == [b"stays"]
        assert client.ttl("stays") > 900


def test_redis_cli_takes_a_file_of_a_running_server(tmp_path: Path) -> None:
    if REDIS_CLI is None or REDIS_SERVER is None:
        pytest.skip("there is no redis-cli, or no redis-server")
    (tmp_path / "store").mkdir()
    (tmp_path / "back").mkdir()
    ours = SocketServer("ours", [*OURS, "serve"], tmp_path / "store")
    try:
        with ours.client() as client:
            fill(client)
            expected = digest(client)
            command = [REDIS_CLI, "-p", str(ours.port)]
            for option, name in (("--rdb", "dump.rdb"), ("--functions-rdb", "functions.rdb")):
                target = str(tmp_path / "back" / name)
                subprocess.run([*command, option, target], check=True, capture_output=True, timeout=120)
        items = (tmp_path / "back/functions.rdb").read_bytes()
        assert b"name=lib" in items and len(items) < 1000
    finally:
        ours.stop()
    server = SocketServer("back", [REDIS_SERVER], tmp_path / "back")
    try:
        with server.client() as client:
            assert digest(client) == expected
    finally:
        server.stop()
