"""Topics that go both ways, between real processes: each entry once at each place, however these are linked."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
import redis
from other_server import RedisProcess, link_process, linked
from patience import until
from redis_cluster import RedisCluster
from server_process import Serve, ServerProcess

COUNT = 500
STEPS = ("link-batch-read", "link-batch-sent", "link-batch-done")
Server = ServerProcess | RedisProcess


def client_of(server: Server) -> redis.Redis:
    """One that waits: redis-py sends an XADD again that is not answered within its seconds, and it is there twice."""
    return redis.Redis(port=server.port, socket_timeout=None)


def create(server: ServerProcess, name: str, url: str, *words: str) -> None:
    client_of(server).execute_command("LINK", "CREATE", name, url, "TOPICS", "orders*", *words)


def both(server: ServerProcess, name: str, target: Server) -> None:
    create(server, name, f"redis://127.0.0.1:{target.port}", "DIRECTION", "both")


def say(client: redis.Redis, who: str, start: int = 0, count: int = COUNT) -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(start, start + count):
        pipeline.xadd("orders", {"n": f"{who}:{number}"})
    pipeline.execute()


def said(client: redis.Redis) -> list[str]:
    return [fields[b"n"].decode() for _, fields in client.xrange("orders")]


def settle(clients: Mapping[str, redis.Redis]) -> None:
    """All that was on its way has arrived, and what goes round has come by: an entry that is appended behind all that
    is seen arrives behind all of it, and so on, once for each place."""
    for round in range(len(clients) + 1):
        for name, client in clients.items():
            client.xadd("orders", {"n": f"end:{name}:{round}"})
        for client in clients.values():
            for name in clients:
                end = f"end:{name}:{round}"
                until(lambda client=client, end=end: end in said(client), end)  # type: ignore[misc]


def have_all_carried(clients: Mapping[str, redis.Redis], positions: int) -> bool:
    """Every carrier, and there are so many, is behind the last entry of its source."""
    ends = {client.xinfo_stream("orders")["last-generated-id"] for client in clients.values()}
    fields = [client.hgetall("__links__:{orders}") for client in clients.values()]
    ids = b"origin:", b"alike:"
    found = [value.split()[1] for each in fields for name, value in each.items() if not name.startswith(ids)]
    return len(found) == positions and ends.issuperset(found)


def check(clients: Mapping[str, redis.Redis], positions: int, count: int = COUNT) -> None:
    """Each place has all entries of each once, and those of one in their order."""
    settle(clients)
    until(lambda: have_all_carried(clients, positions), "the end of every carrier")
    for client in clients.values():
        found = said(client)
        for who in clients:
            assert [word for word in found if word.startswith(f"{who}:")] == [f"{who}:{n}" for n in range(count)]
        assert len(found) == len(clients) * (count + len(clients) + 1)


def exchange(servers: Mapping[str, Server], links: int) -> None:
    """Every place appends, before and after it hears of the others. Each link has two carriers."""
    clients = {name: client_of(server) for name, server in servers.items()}
    for start in range(0, COUNT, 100):
        for name, client in clients.items():
            say(client, name, start, 100)
    check(clients, 2 * links)


@pytest.fixture
def other(start_redis: Callable[..., RedisProcess]) -> RedisProcess:
    return start_redis("--appendonly", "yes", "--appendfsync", "always")


def test_entries_of_either_side_are_on_both_once_and_say_where_they_were_appended(
    serve: Serve, other: RedisProcess
) -> None:
    server = serve()
    both(server, "central", other)
    exchange({"here": server, "there": other}, 1)
    here, there = client_of(server), client_of(other)
    origins = {fields[b"link-origin"] for _, fields in there.xrange("orders") if b"link-origin" in fields}
    ids = [id for id, fields in here.xrange("orders") if b"link-origin" not in fields]
    assert sorted(origin.rpartition(b"/")[2] for origin in origins) == sorted(ids)

    def is_all_told() -> bool:
        info = here.execute_command("LINK", "INFO", "central")
        ways = sorted(each[b"direction"] for each in info[b"topic-states"])
        return ways == [b"in", b"out"] and info[b"entries-in"] == info[b"entries-out"] == COUNT + 3

    until(is_all_told, "what is said of it")


def test_two_links_between_the_same_two_stores_bring_each_entry_once(serve: Serve, tmp_path: Path) -> None:
    one, two = serve(folder=tmp_path / "one"), serve(folder=tmp_path / "two")
    both(one, "there", two)
    both(two, "back", one)
    exchange({"one": one, "two": two}, 2)


def test_a_ring_of_three_stores_brings_each_entry_once(serve: Serve, tmp_path: Path) -> None:
    servers = [serve(folder=tmp_path / str(number)) for number in range(3)]
    for number, server in enumerate(servers):
        both(server, "next", servers[(number + 1) % 3])
    exchange({str(number): server for number, server in enumerate(servers)}, 3)


def test_two_stores_that_are_linked_and_meet_at_a_redis_have_each_entry_once_also_when_it_is_started_again(
    serve: Serve, tmp_path: Path, other: RedisProcess
) -> None:
    one, two = serve(folder=tmp_path / "one"), serve(folder=tmp_path / "two")
    both(one, "redis", other)
    both(two, "redis", other)
    both(one, "two", two)
    servers = {"one": one, "two": two, "redis": other}
    clients = {name: client_of(server) for name, server in servers.items()}
    for name, client in clients.items():
        say(client, name, 0, COUNT // 2)
    other.kill()
    other.start()
    for name, client in clients.items():
        say(client, name, COUNT // 2, COUNT // 2)
    check(clients, 6)


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_any_step_leaves_each_entry_once_on_both_sides(serve: Serve, other: RedisProcess, step: str) -> None:
    server = serve(environment={"RLITE_FAILPOINT": step})
    say(client_of(server), "here")
    say(client_of(other), "there")
    both(server, "central", other)
    died: set[int] = set()

    def has_died_often() -> bool:
        died.add(link_process(server.store_folder))
        return len(died - {0}) >= 4

    until(has_died_often, "the fourth process")
    server.end(signal.SIGKILL)
    check({"here": client_of(serve()), "there": client_of(other)}, 2)


def test_kills_of_either_side_under_load_leave_each_entry_once(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    both(server, "central", other)
    until(lambda: linked(server.port, "central"), "the link")
    for round in range(5):
        for server_, who in ((server, "here"), (other, "there")):
            say(client_of(server_), who, round * 100, 100)
        if round % 2:
            other.kill()
            other.start()
        else:
            process = link_process(server.store_folder)
            os.kill(process, signal.SIGKILL)
            until(lambda: link_process(server.store_folder) not in (0, process), "another process")  # noqa: B023
    check({"here": client_of(server), "there": client_of(other)}, 2)


def test_a_link_that_went_one_way_and_goes_both_brings_nothing_back(serve: Serve, other: RedisProcess) -> None:
    server = serve()
    here, there = client_of(server), client_of(other)
    say(here, "here", 0, 100)
    create(server, "central", other.url)
    until(lambda: there.xlen("orders") == 100, "the entries")
    here.execute_command("LINK", "DELETE", "central")
    say(there, "there", 0, COUNT)
    both(server, "central", other)
    say(here, "here", 100, COUNT - 100)
    check({"here": here, "there": there}, 2)


def test_a_link_that_had_to_share_its_topic_and_goes_both_ways_brings_nothing_back(
    serve: Serve, other: RedisProcess
) -> None:
    """What it has brought before others wrote there has the ids of its source, and does not say where it comes from."""
    server = serve()
    here, there = client_of(server), client_of(other)
    say(here, "here", 0, 100)
    create(server, "central", other.url)
    until(lambda: there.xlen("orders") == 100, "the entries")
    say(there, "there", 0, 100)
    say(here, "here", 100, 100)
    until(lambda: there.xlen("orders") == 300, "the entries with ids of the target's")
    here.execute_command("LINK", "DELETE", "central")
    until(lambda: not link_process(server.store_folder), "the end of the link")
    both(server, "central", other)
    say(here, "here", 200, COUNT - 200)
    say(there, "there", 100, COUNT - 100)
    check({"here": here, "there": there}, 2)


def test_a_one_way_link_in_a_ring_with_others_stops_and_says_why(serve: Serve, tmp_path: Path) -> None:
    one, two = serve(folder=tmp_path / "one"), serve(folder=tmp_path / "two")
    both(one, "there", two)
    say(client_of(two), "two", 0, 10)
    until(lambda: client_of(one).xlen("orders") == 10, "the entries")
    create(one, "again", f"redis://127.0.0.1:{two.port}")
    error = lambda: client_of(one).execute_command("LINK", "INFO", "again")[b"error"]  # noqa: E731
    until(lambda: b"they would go in circles" in error(), "the refusal")
    say(client_of(one), "one", 0, 10)
    until(lambda: client_of(two).xlen("orders") == 20, "the entries")
    assert client_of(one).xlen("orders") == 20


def test_topics_of_a_cluster_go_both_ways_by_a_pattern(serve: Serve, start_redis: Callable[..., RedisProcess]) -> None:
    cluster, server = RedisCluster(start_redis), serve()
    names = [f"orders.{number}" for number in range(6)]
    here = client_of(server)
    for name in names:
        here.xadd(name, {"n": "here"})
        with closing(cluster.owner(name).client()) as there:
            there.xadd(name, {"n": "there"})
    create(server, "cluster", cluster.url, "DIRECTION", "both")
    for name in names:
        with closing(cluster.owner(name).client()) as there:
            for client in (here, there):
                until(lambda client=client, name=name: client.xlen(name) == 2, name)  # type: ignore[misc]
                assert sorted(fields[b"n"] for _, fields in client.xrange(name)) == [b"here", b"there"]
