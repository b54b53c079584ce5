"""Topics over links, between real processes: each entry once, whatever is killed and whenever."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from other_server import RedisProcess, link_process
from patience import until
from server_process import Serve, ServerProcess

COUNT = 3000
STEPS = ("link-batch-read", "link-batch-sent", "link-batch-done")


def client_of(server: ServerProcess | RedisProcess) -> redis.Redis:
    return redis.Redis(port=server.port)


def create(server: ServerProcess, target: ServerProcess | RedisProcess, *words: str) -> None:
    client_of(server).execute_command("LINK", "CREATE", "central", f"redis://127.0.0.1:{target.port}", *words)


def fill(client: redis.Redis, topic: str, start: int = 0, count: int = COUNT) -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(start, start + count):
        pipeline.xadd(topic, {"n": number})
    pipeline.execute()


def numbers(client: redis.Redis, topic: str) -> list[int]:
    return [int(fields[b"n"]) for _, fields in client.xrange(topic)]


def info(server: ServerProcess) -> dict[bytes, Any]:
    found: dict[bytes, Any] = client_of(server).execute_command("LINK", "INFO", "central")
    return found


def has(client: redis.Redis, topic: str, count: int) -> Callable[[], bool]:
    return lambda: client.xlen(topic) >= count


@pytest.fixture
def other(start_redis: Callable[..., RedisProcess]) -> RedisProcess:
    return start_redis("--appendonly", "yes", "--appendfsync", "always")


def test_entries_go_out_with_their_ids_and_follow_as_they_come(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    fill(here, "orders.a")
    create(server, other, "TOPICS", "orders.*")
    until(has(there, "orders.a", COUNT), "the entries")
    fill(here, "orders.a", COUNT, 10)
    fill(here, "orders.b", 0, 10)
    until(has(there, "orders.a", COUNT + 10), "the new entries")
    until(has(there, "orders.b", 10), "the new topic")
    assert there.xrange("orders.a") == here.xrange("orders.a")
    assert there.xrange("orders.b") == here.xrange("orders.b")
    assert there.keys("other") == []
    until(lambda: info(server)[b"lag"] == 0 and info(server)[b"entries-out"] == COUNT + 20, "what is said of it")


def test_where_somebody_else_writes_entries_get_ids_of_the_target_and_say_where_they_come_from(
    serve: Serve, other: RedisProcess
) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    there.xadd("orders", {"n": -1})
    fill(here, "orders", 0, 50)
    create(server, other, "TOPICS", "orders")
    until(has(there, "orders", 51), "the entries")
    fill(here, "orders", 50, 50)
    until(has(there, "orders", 101), "the entries")
    there.xadd("orders", {"n": -1})
    found = there.xrange("orders")
    assert [int(fields[b"n"]) for _, fields in found] == [-1, *range(100), -1]
    origins = [fields[b"link-origin"].rpartition(b"/") for _, fields in found[1:-1]]
    assert [id for _, _, id in origins] == [id for id, _ in here.xrange("orders")]


def test_a_writer_that_comes_later_is_noticed(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    create(server, other, "TOPICS", "orders")
    fill(here, "orders", 0, 10)
    until(has(there, "orders", 10), "the entries")
    there.xadd("orders", {"n": -1}, id="99999999999999-0")
    fill(here, "orders", 10, 10)
    until(has(there, "orders", 21), "the entries")
    assert numbers(there, "orders") == [*range(10), -1, *range(10, 20)]


def test_a_topic_comes_in_from_there_and_is_followed(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    fill(there, "eu:orders.a")
    create(server, other, "TOPICS", "orders.*", "DIRECTION", "in", "PREFIX", "eu:")
    until(has(here, "orders.a", COUNT), "the entries")
    fill(there, "eu:orders.a", COUNT, 10)
    until(has(here, "orders.a", COUNT + 10), "the new entries")
    assert here.xrange("orders.a") == there.xrange("eu:orders.a")


def test_what_comes_from_now_on_is_all_that_is_asked_for(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    fill(there, "orders", 0, 10)
    create(server, other, "TOPICS", "orders", "DIRECTION", "in", "FROM", "$")
    until(lambda: info(server)[b"topic-states"] and info(server)[b"topic-states"][0][b"state"] == b"up", "the link")
    fill(there, "orders", 10, 10)
    until(has(here, "orders", 10), "the entries")
    assert numbers(here, "orders") == list(range(10, 20))


@pytest.mark.parametrize("way", ["out", "in"])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_each_entry_there_once(
    serve: Serve, other: RedisProcess, step: str, way: str
) -> None:
    server = serve(environment={"RLITE_FAILPOINT": step})
    here, there = client_of(server), client_of(other)
    source, target = (here, there) if way == "out" else (there, here)
    fill(source, "orders")
    create(server, other, "TOPICS", "orders", "DIRECTION", way)
    died: set[int] = set()

    def has_died_often() -> bool:
        process = link_process(server.store_folder)
        died.add(process)
        return len(died - {0}) >= 3

    until(has_died_often, "the third process")
    server.end(signal.SIGKILL)
    again = serve()
    target = there if way == "out" else client_of(again)
    until(has(target, "orders", COUNT), "the entries")
    fill(client_of(again) if way == "out" else there, "orders", COUNT, 10)
    until(has(target, "orders", COUNT + 10), "the new entries")
    assert numbers(target, "orders") == list(range(COUNT + 10))


def test_kills_of_either_side_under_load_leave_each_entry_there_once(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    create(server, other, "TOPICS", "orders")
    count = 0
    for round in range(6):
        fill(client_of(server), "orders", count)
        count += COUNT
        there = client_of(other)
        until(has(there, "orders", count - COUNT + 1), "some entries")
        if round % 3 == 0:
            other.kill()
            other.start()
        elif round % 3 == 1:
            os.kill(link_process(server.store_folder), signal.SIGKILL)
            until(lambda: link_process(server.store_folder), "another process")
        else:
            client_of(other).client_kill_filter(_type="normal", skipme=True)
    until(has(client_of(other), "orders", count), "the entries")
    assert numbers(client_of(other), "orders") == list(range(count))


def test_what_was_trimmed_before_it_could_be_brought_over_is_counted(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    create(server, other, "TOPICS", "orders")
    fill(here, "orders", 0, 10)
    until(has(there, "orders", 10), "the entries")
    here.execute_command("LINK", "PAUSE", "central")
    until(lambda: len(there.client_list()) == 1, "the end of the connections")
    fill(here, "orders", 10, 100)
    here.xtrim("orders", maxlen=30, approximate=False)
    here.execute_command("LINK", "RESUME", "central")
    until(has(there, "orders", 40), "the entries")
    assert numbers(there, "orders") == [*range(10), *range(80, 110)]
    until(lambda: info(server)[b"gaps"] == 70, "what is said of it")


def test_topics_of_one_slot_have_positions_of_their_own(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    names = ("{user}:a", "{user}:b")
    create(server, other, "TOPICS", *names)
    for count in (COUNT, 2 * COUNT):
        for name in names:
            fill(here, name, count - COUNT)
        for name in names:
            until(has(there, name, count), name)
    for name in names:
        assert numbers(there, name) == list(range(2 * COUNT))


def test_a_ring_of_topics_stops_before_entries_go_round(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(folder=tmp_path / str(number)) for number in range(3)]
    for number, server in enumerate(servers):
        create(server, servers[(number + 1) % 3], "TOPICS", "orders")
    fill(client_of(servers[0]), "orders", 0, 20)

    def is_stopped() -> bool:
        return any(b"they would go in circles" in info(server)[b"error"] for server in servers)

    until(is_stopped, "the refusal")
    until(has(client_of(servers[2]), "orders", 20), "the entries")
    for server in servers:
        assert numbers(client_of(server), "orders") == list(range(20))
