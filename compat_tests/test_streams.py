"""Topics as programs use them through redis-py: workers of a group, blocking readers, pipelines, scans, locks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until

from compat_tests.servers import SocketServer

ENTRIES = 200
BLOCK_MS = 15_000


@pytest.fixture
def client(server: SocketServer, protocol: int) -> Any:
    with server.client(protocol=protocol, decode_responses=True) as client:
        yield client


def entries_of(reply: Any) -> list[tuple[str, dict[str, str]]]:
    """Of the one topic that XREAD was asked for; a dict in RESP3, where lists hold the batches."""
    if isinstance(reply, dict):
        return [entry for batches in reply.values() for batch in batches for entry in batch]
    return [entry for _, entries in reply or [] for entry in entries]


def run(*bodies: Callable[[], None]) -> None:
    """In threads; what one raises is raised."""
    failures: list[BaseException] = []

    def guarded(body: Callable[[], None]) -> None:
        try:
            body()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(body,), daemon=True) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not failures, failures
    assert not any(thread.is_alive() for thread in threads)


def test_workers_of_a_group_share_the_entries_and_each_is_done_once(server: SocketServer, client: Any) -> None:
    client.xgroup_create("jobs", "workers", id="0", mkstream=True)
    done: list[str] = []

    def work(name: str) -> None:
        with server.client(decode_responses=True) as own:
            while True:
                reply = own.xreadgroup("workers", name, {"jobs": ">"}, count=7, block=BLOCK_MS)
                stops = [fields for _, fields in entries_of(reply) if "stop" in fields]
                for entry_id, fields in entries_of(reply):
                    own.xack("jobs", "workers", entry_id)
                    if "number" in fields:
                        done.append(fields["number"])
                for stop in stops[1:]:  # for somebody else
                    own.xadd("jobs", stop)
                if stops:
                    return

    def produce() -> None:
        for number in range(ENTRIES):
            client.xadd("jobs", {"number": number})
        until(lambda: len(done) == ENTRIES)
        for _ in workers:
            client.xadd("jobs", {"stop": 1})

    workers = [partial(work, f"worker-{number}") for number in range(3)]
    run(produce, *workers)
    assert sorted(map(int, done)) == list(range(ENTRIES))
    assert client.xpending("jobs", "workers")["pending"] == 0


def test_what_a_worker_left_is_found_and_claimed_by_another(client: Any) -> None:
    ids = [client.xadd("jobs", {"number": number}) for number in range(5)]
    client.xgroup_create("jobs", "workers", id="0")
    client.xreadgroup("workers", "gone", {"jobs": ">"}, count=3)
    pending = client.xpending("jobs", "workers")
    assert (pending["pending"], pending["min"], pending["max"]) == (3, ids[0], ids[2])
    assert pending["consumers"] == [{"name": "gone", "pending": 3}]
    details = client.xpending_range("jobs", "workers", min="-", max="+", count=10, consumername="gone", idle=0)
    assert [(one["message_id"], one["consumer"], one["times_delivered"]) for one in details] == [
        (one, "gone", 1) for one in ids[:3]
    ]
    claimed = client.xclaim("jobs", "workers", "heir", min_idle_time=0, message_ids=ids[:1])
    assert claimed == [(ids[0], {"number": "0"})]
    client.xdel("jobs", ids[1])
    next_id, entries, deleted = client.xautoclaim("jobs", "workers", "heir", min_idle_time=0, count=10)
    assert (next_id, [entry_id for entry_id, _ in entries], deleted) == ("0-0", [ids[0], ids[2]], [ids[1]])
    assert client.xautoclaim("jobs", "workers", "last", min_idle_time=0, justid=True) == [ids[0], ids[2]]
    mine = entries_of(client.xreadgroup("workers", "last", {"jobs": "0"}))
    assert [entry_id for entry_id, _ in mine] == [ids[0], ids[2]]
    assert client.xack("jobs", "workers", *ids) == 2
    (group,) = client.xinfo_groups("jobs")
    assert (group["pending"], group["consumers"], group["last-delivered-id"]) == (0, 3, ids[2])


def test_blocked_reader_gets_what_comes_and_goes_on_behind_it(server: SocketServer, client: Any) -> None:
    got: list[str] = []

    def read() -> None:
        with server.client(decode_responses=True) as own:
            last = "$"
            while len(got) < ENTRIES:
                entries = entries_of(own.xread({"log": last}, block=BLOCK_MS))
                got.extend(fields["number"] for _, fields in entries)
                last = entries[-1][0]

    def write() -> None:
        until(lambda: client.info("clients")["blocked_clients"] == 1)
        for number in range(ENTRIES):
            client.xadd("log", {"number": number}, maxlen=1000, approximate=True)

    run(read, write)
    assert got == [str(number) for number in range(ENTRIES)]


def test_block_that_ends_by_time_gives_nothing(client: Any) -> None:
    client.xgroup_create("log", "g", mkstream=True)
    assert not client.xread({"log": "$"}, block=10)
    assert not client.xreadgroup("g", "c", {"log": ">"}, block=10)


def test_blocked_reader_is_told_when_its_group_goes(server: SocketServer, client: Any) -> None:
    client.xgroup_create("log", "g", mkstream=True)

    def read() -> None:
        with server.client() as own, pytest.raises(redis.ResponseError, match="NOGROUP|UNBLOCKED|no longer exists"):
            own.xreadgroup("g", "c", {"log": ">"}, block=BLOCK_MS)

    def destroy() -> None:
        until(lambda: client.info("clients")["blocked_clients"] == 1)
        client.xgroup_destroy("log", "g")

    run(read, destroy)


@pytest.mark.parametrize("how", ["swapdb", "rename", "copy", "move", "exec"])
def test_blocked_reader_is_woken_by_whatever_brings_its_key(server: SocketServer, client: Any, how: str) -> None:
    def bring() -> None:
        until(lambda: client.info("clients")["blocked_clients"] == 1)
        with server.client(db=1) as other:
            match how:
                case "swapdb":
                    other.xadd("log", {"a": 1}, id="1-1")
                    other.swapdb(0, 1)
                case "move":
                    other.xadd("log", {"a": 1}, id="1-1")
                    other.move("log", 0)
                case "exec":
                    with client.pipeline() as pipe:
                        pipe.xadd("log", {"b": 1}, id="0-1").delete("log").xadd("log", {"a": 1}, id="1-1").execute()
                case _:
                    client.xadd("elsewhere", {"a": 1}, id="1-1")
                    getattr(client, how)("elsewhere", "log")

    def read() -> None:
        with server.client(decode_responses=True) as own:
            assert entries_of(own.xread({"log": "0"}, block=BLOCK_MS)) == [("1-1", {"a": "1"})]

    run(read, bring)


@pytest.mark.parametrize("transaction", [True, False])
def test_pipeline_answers_each_in_its_place(client: Any, transaction: bool) -> None:
    with client.pipeline(transaction=transaction) as pipe:
        for number in range(ENTRIES):
            pipe.xadd("log", {"number": number}, id=f"1-{number + 1}")
        pipe.xlen("log").xrange("log", count=1).xtrim("log", maxlen=10, approximate=False).set("text", 1).incr("text")
        pipe.xadd("text", {"a": 1})
        answers = pipe.execute(raise_on_error=False)
    assert answers[:ENTRIES] == [f"1-{number + 1}" for number in range(ENTRIES)]
    assert answers[ENTRIES:-1] == [ENTRIES, [("1-1", {"number": "0"})], ENTRIES - 10, True, 2]
    assert "WRONGTYPE" in str(answers[-1])


def test_transaction_runs_again_when_what_it_watches_has_changed(server: SocketServer, client: Any) -> None:
    client.set("count", 1)
    attempts = []

    def increase(pipe: Any) -> None:
        value = int(pipe.get("count"))
        attempts.append(value)
        if len(attempts) == 1:
            with server.client() as other:
                other.set("count", 10)
        pipe.multi()
        pipe.set("count", value + 1)
        pipe.xadd("log", {"count": value + 1}, id="1-*")

    assert client.transaction(increase, "count")[0] is True
    assert attempts == [1, 10] and client.get("count") == "11" and client.xlen("log") == 1


def test_scan_iter_finds_every_key_once_by_pattern_and_by_type(client: Any) -> None:
    for number in range(ENTRIES):
        client.set(f"text:{number}", number)
        client.xadd(f"log:{number}", {"number": number})
    assert sorted(client.scan_iter(count=17)) == sorted(client.keys("*"))
    assert len(list(client.scan_iter(match="text:*", count=50))) == ENTRIES
    assert len(list(client.scan_iter(_type="stream"))) == ENTRIES
    assert sorted(client.scan_iter(match="log:1?")) == [f"log:{number}" for number in range(10, 20)]
    for key in client.scan_iter(match="text:*"):
        client.delete(key)
    assert client.dbsize() == ENTRIES


def test_lock_by_set_nx_is_held_by_one(client: Any) -> None:
    assert client.set("lock", "mine", nx=True, px=100_000) is True
    assert client.set("lock", "other", nx=True, px=100_000) is None
    with client.pipeline() as pipe:  # as a program lets go of it that has no EVAL
        pipe.watch("lock")
        assert pipe.get("lock") == "mine"
        pipe.multi()
        pipe.delete("lock")
        assert pipe.execute() == [1]
    assert client.set("lock", "other", nx=True, px=100_000) is True


def test_lock_of_redis_py_is_held_by_one(client: Any) -> None:
    with client.lock("lock", timeout=PATIENCE_S):
        assert client.lock("lock").acquire(blocking=False) is False


def test_information_is_what_redis_py_makes_of_it(client: Any) -> None:
    client.xadd("log", {"a": 1}, id="1-1")
    client.xadd("log", {"b": 2}, id="1-2")
    client.xgroup_create("log", "g", id="0")
    client.xreadgroup("g", "c", {"log": ">"}, count=1)
    stream = client.xinfo_stream("log")
    assert (stream["length"], stream["last-generated-id"], stream["groups"]) == (2, "1-2", 1)
    assert stream["first-entry"] == ("1-1", {"a": "1"}) and stream["last-entry"] == ("1-2", {"b": "2"})
    full = client.xinfo_stream("log", full=True)
    assert full["groups"][0]["pel-count"] == 1 and len(full["entries"]) == 2
    (group,) = client.xinfo_groups("log")
    assert (group["entries-read"], group["lag"], group["pending"]) == (1, 1, 1)
    (consumer,) = client.xinfo_consumers("log", "g")
    assert (consumer["name"], consumer["pending"]) == ("c", 1)


def test_keys_of_topics_are_moved_copied_and_expire(client: Any) -> None:
    client.xadd("log", {"a": 1}, id="1-1")
    client.xgroup_create("log", "g", id="0")
    assert client.copy("log", "copy") and client.rename("log", "renamed") and client.expire("renamed", 1000)
    assert client.type("renamed") == "stream" and 0 < client.ttl("renamed") <= 1000 and client.ttl("copy") == -1
    assert client.xinfo_groups("copy")[0]["name"] == "g"
    assert client.pexpire("copy", 1)
    until(lambda: not client.exists("copy"))
    assert client.move("renamed", 1) and client.keys("*") == []
