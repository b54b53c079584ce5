"""Links to a cluster of three nodes: channels, sharded channels and topics, and slots that move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from other_server import Ear, RedisProcess, end_way, linked, open_way
from patience import until
from redis_cluster import RedisCluster
from server_process import Serve, ServerProcess

COUNT = 300


@pytest.fixture
def cluster(start_redis: Callable[..., RedisProcess]) -> RedisCluster:
    return RedisCluster(start_redis)


def create(server: ServerProcess, cluster: RedisCluster, *words: str) -> None:
    redis.Redis(port=server.port).execute_command("LINK", "CREATE", "cluster", cluster.url, *words)
    until(lambda: linked(server.port, "cluster"), "the link")


def name_at(cluster: RedisCluster, node: int) -> str:
    """A name whose slot this node has."""
    names = (f"orders.{number}" for number in range(1000))
    return next(name for name in names if cluster.owner(name) is cluster.nodes[node])


def say(port: int, name: str, word: str) -> int:
    return int(redis.Redis(port=port).execute_command("SPUBLISH", name, word))


def open_shard(speaker: int, ear: Ear, name: str) -> None:
    def said_and_heard() -> bool:
        say(speaker, name, "begin")
        return ear.hears(b"begin")

    until(said_and_heard, f"the way of {name}")


def test_channels_go_both_ways_at_every_node(serve: Serve, cluster: RedisCluster) -> None:
    server = serve()
    create(server, cluster)
    here, there = Ear(server.port, "news"), [Ear(node.port, "news") for node in cluster.nodes]
    for ear in there:
        open_way(server.port, ear, "news")
    for node in cluster.nodes:
        open_way(node.port, here, "news")
    ears = [here, *there]
    for ear in ears:
        ear.heard.clear()
    ports = {"here": server.port} | {f"node{number}": node.port for number, node in enumerate(cluster.nodes)}
    clients = {name: redis.Redis(port=port) for name, port in ports.items()}
    for number in range(COUNT):
        for name, client in clients.items():
            client.publish("news", f"{name}:{number}")
    end_way(ports, ears, "news")
    for ear in ears:
        for name in ports:
            found = [word for word in ear.heard if word.startswith(f"{name}:".encode())]
            assert found == [f"{name}:{number}".encode() for number in range(COUNT)]


def test_sharded_channels_go_both_ways_whichever_node_has_their_slots(serve: Serve, cluster: RedisCluster) -> None:
    server = serve()
    create(server, cluster)
    for number, node in enumerate(cluster.nodes):
        name = name_at(cluster, number)
        here, there = Ear(server.port, shards=(name,)), Ear(node.port, shards=(name,))
        open_shard(node.port, here, name)
        open_shard(server.port, there, name)
        here.heard.clear()
        there.heard.clear()
        for word in range(COUNT):
            say(node.port, name, f"there:{word}")
            say(server.port, name, f"here:{word}")
        say(node.port, name, "end:there")
        say(server.port, name, "end:here")
        for ear in (here, there):
            for side in ("here", "there"):
                until(lambda ear=ear, side=side: ear.hears(f"end:{side}".encode()), "the end")  # type: ignore[misc]
                found = [word for word in ear.heard if word.startswith(f"{side}:".encode())]
                assert found == [f"{side}:{word}".encode() for word in range(COUNT)]


def test_two_stores_that_meet_at_a_cluster_hear_a_sharded_message_once(
    serve: Serve, cluster: RedisCluster, tmp_path: Path
) -> None:
    one, two = serve(folder=tmp_path / "one"), serve(folder=tmp_path / "two")
    create(one, cluster)
    create(two, cluster)
    redis.Redis(port=one.port).execute_command("LINK", "CREATE", "two", f"redis://127.0.0.1:{two.port}")
    until(lambda: linked(one.port, "two"), "the link between them")
    name = name_at(cluster, 1)
    ears = [Ear(one.port, shards=(name,)), Ear(two.port, shards=(name,)), Ear(cluster.nodes[1].port, shards=(name,))]
    ports = [one.port, two.port, cluster.nodes[1].port]
    for port in ports:
        for ear in ears:
            open_shard(port, ear, name)
    for ear in ears:
        ear.heard.clear()
    for number in range(COUNT):
        for port in ports:
            say(port, name, f"{port}:{number}")
    for port in ports:
        say(port, name, f"end:{port}")
    for ear in ears:
        for port in ports:
            until(lambda ear=ear, port=port: ear.hears(f"end:{port}".encode()), "the end")  # type: ignore[misc]
            found = [word for word in ear.heard if word.startswith(f"{port}:".encode())]
            assert found == [f"{port}:{number}".encode() for number in range(COUNT)]


def test_a_sharded_channel_is_followed_when_its_slot_moves(serve: Serve, cluster: RedisCluster) -> None:
    server = serve()
    create(server, cluster)
    name = name_at(cluster, 2)
    here = Ear(server.port, shards=(name,))
    open_shard(cluster.nodes[2].port, here, name)
    cluster.move(name, cluster.nodes[0])
    here.heard.clear()
    there = Ear(cluster.nodes[0].port, shards=(name,))
    open_shard(cluster.nodes[0].port, here, name)
    open_shard(server.port, there, name)


def test_channels_are_followed_when_the_slot_of_their_markers_moves(serve: Serve, cluster: RedisCluster) -> None:
    server = serve()
    create(server, cluster)
    marker = "__links__:markers"
    here, there = Ear(server.port, "news"), Ear(cluster.nodes[0].port, "news")
    open_way(server.port, there, "news")
    first = cluster.owner(marker)
    cluster.move(marker, next(node for node in cluster.nodes if node is not first))
    there.heard.clear()
    open_way(server.port, there, "news")
    open_way(cluster.nodes[1].port, here, "news")
    here.heard.clear()
    redis.Redis(port=server.port).publish("news", "once")
    redis.Redis(port=server.port).publish("news", "end")
    until(lambda: here.hears(b"end") and there.hears(b"end"), "the end")
    assert here.heard.count(b"once") == there.heard.count(b"once") == 1


def test_topics_go_out_to_the_nodes_of_their_slots_and_come_in_from_them(
    serve: Serve, cluster: RedisCluster
) -> None:
    server = serve()
    client = redis.Redis(port=server.port)
    odd = ["orders.a}b", "orders.{}", "orders.{u}a", "orders.{u}b"]
    out = [name_at(cluster, number) for number in range(3)] + odd
    back = [f"in.{number}" for number in range(6)] + ["in.a}b"]
    for name in out:
        for number in range(COUNT):
            client.xadd(name, {"n": number})
    for name in back:
        for number in range(COUNT):
            cluster.owner(name).client().xadd(name, {"n": number})
    create(server, cluster, "TOPICS", "orders.*")
    client.execute_command("LINK", "CREATE", "back", cluster.url, "TOPICS", *back, "DIRECTION", "in")
    for name in out:
        there = cluster.owner(name).client()
        until(lambda there=there, name=name: there.xlen(name) == COUNT, name)  # type: ignore[misc]
        assert there.xrange(name) == client.xrange(name)
    for name in back:
        until(lambda name=name: client.xlen(name) == COUNT, name)  # type: ignore[misc]
        assert cluster.owner(name).client().xrange(name) == client.xrange(name)
