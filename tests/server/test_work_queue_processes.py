"""Groups as work queues over real processes: consumers and servers that are killed, and several at once."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import redis
from other_process import OtherProcess
from patience import until
from server_process import Serve, ServerProcess

import rlite_pubsub

FOREVER_MS = 30_000


def client_of(server: ServerProcess) -> redis.Redis:
    return redis.Redis(port=server.port)


def prepare(client: redis.Redis, *settings: Any, count: int = 3) -> None:
    client.xgroup_create("t", "g", mkstream=True)
    client.execute_command("TOPIC.GROUP", "t", "g", *settings)  # type: ignore[no-untyped-call]
    for number in range(count):
        client.xadd("t", {"n": number})


def numbers(reply: Any) -> list[int]:
    """Of the entries of the one key that was served."""
    entries = next(iter(reply.values()))[0] if isinstance(reply, dict) else reply[0][1] if reply else []
    return [int(fields[b"n"]) for _, fields in entries]


def read(client: redis.Redis, consumer: str, **options: Any) -> list[int]:
    return numbers(client.xreadgroup("g", consumer, {"t": ">"}, **options))


TAKES_AND_DIES = """
client = rlite_pubsub.Redis(folder)
found = client.xreadgroup("g", "victim", {"t": ">"})
say("has them")
import time
time.sleep(600)
"""


@pytest.mark.parametrize("over", ["server", "folder"])
def test_what_a_killed_consumer_had_goes_to_the_one_that_waits(
    tmp_path: Path, over: str, request: pytest.FixtureRequest
) -> None:
    if over == "server":
        server: ServerProcess = request.getfixturevalue("server")
        folder, client = server.store_folder, client_of(server)
    else:
        folder = tmp_path / "own"
        client = rlite_pubsub.Redis(folder)
    prepare(client, "TIMEOUT", 300)
    with OtherProcess(folder, TAKES_AND_DIES) as victim:
        assert victim.hear() == "has them"
        victim.kill()
    assert read(client, "heir", block=FOREVER_MS) == [0, 1, 2]
    rows = client.xpending_range("t", "g", "-", "+", 10)
    assert [(row["consumer"], row["times_delivered"]) for row in rows] == [(b"heir", 2)] * 3
    client.close()


def test_program_alone_gets_back_what_it_left_lying(tmp_path: Path) -> None:
    client = rlite_pubsub.Redis(tmp_path)
    prepare(client, "TIMEOUT", 200)
    assert read(client, "me") == [0, 1, 2]
    assert read(client, "me", block=FOREVER_MS) == [0, 1, 2]
    client.close()


def test_timeouts_and_delays_go_on_while_nobody_has_the_store(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path)
    client = client_of(server)
    prepare(client, "TIMEOUT", 60_000)
    (entry_id, *_), *_ = client.xreadgroup("g", "c", {"t": ">"})[0][1]
    assert client.execute_command("TOPIC.REQUEUE", "t", "g", entry_id, "DELAY", 1000) == 1  # type: ignore[no-untyped-call]
    client.execute_command("TOPIC.GROUP", "t", "g", "TIMEOUT", 1000)  # type: ignore[no-untyped-call]
    server.process.kill()
    server.process.wait()
    server.clean_up()
    client = rlite_pubsub.Redis(server.store_folder)
    found: list[int] = []
    while len(found) < 3:
        found += read(client, "heir", block=FOREVER_MS)
    assert sorted(found) == [0, 1, 2]
    client.close()


def test_deferred_entries_survive_a_kill_and_are_appended_once(tmp_path: Path) -> None:
    """Two servers and a program on one store, one of which is killed while they are being appended."""
    first = ServerProcess(tmp_path)
    (tmp_path / "second").mkdir()
    client = client_of(first)
    due_ms = int(time.time() * 1000) + 1500
    pipeline = client.pipeline(transaction=False)
    for number in range(2000):
        pipeline.execute_command("TOPIC.DEFER", "t", due_ms + number % 400, "n", number)  # type: ignore[no-untyped-call]
    pipeline.execute()
    first.process.kill()
    first.process.wait()
    first.clean_up()
    servers = [
        ServerProcess(tmp_path, store_folder=first.store_folder),
        ServerProcess(tmp_path / "second", store_folder=first.store_folder),
    ]
    program = rlite_pubsub.Redis(first.store_folder)
    until(lambda: program.xlen("t"), "the first one")
    servers[0].process.kill()
    until(lambda: program.xlen("t") >= 2000, "the last one")
    found = [int(fields[b"n"]) for _, fields in program.xrange("t")]
    assert Counter(found) == Counter(range(2000))
    assert [number % 400 for number in found] == sorted(number % 400 for number in found)
    program.close()
    for server in servers:
        server.clean_up()


WORKS = """
import os
client = rlite_pubsub.Redis(folder)
me = str(os.getpid())
say("ready")
while True:
    for _, entries in client.xreadgroup("g", me, {"t": ">"}, count=3, block=100) or ():
        for entry_id, fields in entries:
            if int(fields[b"n"]) % 7 == 0 and client.xadd("seen:" + fields[b"n"].decode(), {"x": 1}) \
                    and client.xlen("seen:" + fields[b"n"].decode()) == 1:
                continue  # left lying the first time
            client.xack("t", "g", entry_id)
"""


def test_workers_that_are_killed_or_forget_leave_nothing_undone(server: ServerProcess) -> None:
    client = client_of(server)
    prepare(client, "TIMEOUT", 300, count=300)
    workers = [OtherProcess(server.store_folder, WORKS) for _ in range(3)]
    for worker in workers:
        assert worker.hear() == "ready"
    workers[0].kill()
    for number in range(300, 600):
        client.xadd("t", {"n": number})

    def is_done() -> bool:
        reply = client.execute_command("TOPIC.GROUP", "t", "g")  # type: ignore[no-untyped-call]
        found = dict(zip(reply[::2], reply[1::2], strict=True)) if isinstance(reply, list) else reply
        return not (found[b"lag"] or found[b"pending"] or found[b"released"])

    until(is_done, "the end of the work")
    for worker in workers[1:]:
        worker.kill()
    for worker in workers:
        worker.__exit__()


def test_reader_of_another_process_is_woken_by_requeue_and_resume(server: ServerProcess) -> None:
    client = client_of(server)
    prepare(client)
    waits = """
    client = rlite_pubsub.Redis(folder)
    for _ in range(2):
        say("ready")
        found = client.xreadgroup("g", "other", {"t": ">"}, block=30000)
        say(len(next(iter(found.values()))[0] if isinstance(found, dict) else found[0][1]))
    """
    (entry_id, *_), *_ = client.xreadgroup("g", "c", {"t": ">"})[0][1]
    with OtherProcess(server.store_folder, waits) as other:
        assert other.hear() == "ready"
        assert client.execute_command("TOPIC.REQUEUE", "t", "g", entry_id) == 1  # type: ignore[no-untyped-call]
        assert other.hear() == "1"
        client.execute_command("TOPIC.PAUSE", "t")  # type: ignore[no-untyped-call]
        assert other.hear() == "ready"
        client.xadd("t", {"n": 4})
        client.xadd("t", {"n": 5})
        client.execute_command("TOPIC.RESUME", "t")  # type: ignore[no-untyped-call]
        assert other.hear() == "2"


@pytest.mark.parametrize("payload_bytes", [10, 200_000], ids=["small", "large"])
def test_emptied_topic_has_no_depth_and_nothing_in_flight_at_any_server(serve: Serve, payload_bytes: int) -> None:
    here, there = serve(), serve()
    with client_of(here) as one, client_of(there) as other:
        prepare(one, "TIMEOUT", FOREVER_MS, count=0)
        ids = [one.xadd("t", {"n": number, "load": b"x" * payload_bytes}) for number in range(20)]
        assert read(one, "a", count=10) == list(range(10))
        one.execute_command("TOPIC.REQUEUE", "t", "g", ids[0])  # type: ignore[no-untyped-call]
        one.execute_command("TOPIC.REQUEUE", "t", "g", ids[1], "DELAY", FOREVER_MS)  # type: ignore[no-untyped-call]
        later = int(time.time() * 1000) + FOREVER_MS
        one.execute_command("TOPIC.DEFER", "t", later, "n", "20")  # type: ignore[no-untyped-call]

        def in_hand(client: redis.Redis) -> list[int]:
            group = client.execute_command("TOPIC.GROUP", "t", "g")  # type: ignore[no-untyped-call]
            deferred = client.execute_command("TOPIC.DEFERRED", "t")  # type: ignore[no-untyped-call]
            counts = [group[name] for name in (b"lag", b"pending", b"released", b"delayed")]
            return [*counts, deferred[b"count"], client.xlen("t")]

        assert in_hand(one) == in_hand(other) == [10, 8, 1, 1, 1, 20]
        assert other.execute_command("TOPIC.EMPTY", "t") == 20  # type: ignore[no-untyped-call]
        assert in_hand(one) == in_hand(other) == [0, 0, 0, 0, 0, 0]
        assert one.xpending("t", "g")["pending"] == 0
        assert one.xack("t", "g", *ids) == 0
        one.xadd("t", {"n": 21})
        assert read(other, "b") == [21]
