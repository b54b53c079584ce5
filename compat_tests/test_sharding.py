"""A sharded store of three servers beside a Redis Cluster of three nodes: the same replies, and the same clients."""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import redis.asyncio
from patience import PATIENCE_S
from redis.cluster import ClusterNode, RedisCluster

from compat_tests.servers import REDIS_SERVER, SocketServer, start_ours
from compat_tests.test_node import HERE, NODE
from compat_tests.wholes import OURS, Members, Ours, Theirs, shard


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ours]:
    members = Ours(tmp_path_factory.mktemp("whole"))
    yield members
    members.stop()


@pytest.fixture(scope="module")
def theirs(ours: Ours, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Theirs]:
    if REDIS_SERVER is None:
        pytest.skip("no redis-server: nothing is compared with a Redis Cluster")
    members = Theirs(tmp_path_factory.mktemp("cluster"), ours.runs())
    yield members
    members.stop()


def known(members: Members, reply: bytes) -> bytes:
    """Without what differs from whole to whole: ports, ids, and counts of a gossip that we have not."""
    for number, server in enumerate(members.servers):
        own = server.client().execute_command("CLUSTER", "MYID")
        reply = reply.replace(own if isinstance(own, bytes) else own.encode(), b"id-%d" % number)
        reply = reply.replace(b":%d" % server.port, b":port-%d" % number)
    reply = re.sub(rb"@\d+ ", b"@bus ", reply)
    reply = re.sub(rb"master - \d+ \d+ \d+ ", b"master - ping pong epoch ", reply)
    reply = re.sub(rb"cluster_stats_[^\r]*\r\n", b"", reply)
    reply = re.sub(rb"cluster_(my|current)_epoch:\d+", b"cluster_epoch", reply)
    return re.sub(rb"^[$=]\d+\r\n(txt:)?", b"", reply)


STORY = """
CLUSTER INFO
CLUSTER MYID
CLUSTER KEYSLOT foo
CLUSTER KEYSLOT {a}foo
CLUSTER KEYSLOT {}foo
CLUSTER COUNTKEYSINSLOT 0
CLUSTER COUNTKEYSINSLOT 99999
CLUSTER COUNTKEYSINSLOT x
CLUSTER GETKEYSINSLOT 0 10
CLUSTER GETKEYSINSLOT 0 -1
CLUSTER GETKEYSINSLOT 99999 1
CLUSTER REPLICAS abc
CLUSTER SLAVES abc
CLUSTER COUNT-FAILURE-REPORTS abc
CLUSTER FOO
SET foo 1
SET bar 1
SET hello 1
GET foo
GET bar
GET hello
MGET bar foo
MGET bar {bar}2
MGET hello {hello}2
MGET foo {foo}2
DEL foo bar
SELECT 1
SELECT 0
SELECT x
MOVE foo 1
MOVE bar 1
SWAPDB 0 1
COPY bar {bar}z DB 1
COPY foo {foo}z DB 1
COPY hello {hello}z
READONLY
READWRITE
ASKING
GET foo
ASKING
GET bar
MULTI
SET bar 2
SET foo 2
SET hello 2
EXEC
MULTI
MGET bar foo
EXEC
MULTI
GET hello
GET hello
EXEC
MULTI
GET bar
EXEC
WATCH bar foo
WATCH hello
UNWATCH
EVAL return(1) 2 bar foo
EVAL return(1) 1 foo
EVAL return(1) 1 bar
EVAL return(1) 1 hello
EVAL return(1) 0
EVAL return(redis.call('get','foo')) 0
EVAL return(redis.call('get','bar')) 0
EVAL return(redis.call('get','hello')) 0
SPUBLISH bar 1
SPUBLISH foo 1
SPUBLISH hello 1
PUBLISH foo 1
XADD foo 1-1 a b
XADD bar 1-1 a b
XADD hello{x} 1-1 a b
XREAD STREAMS bar foo 0 0
XREADGROUP GROUP g c STREAMS bar foo > >
XREADGROUP GROUP g c STREAMS foo >
XREADGROUP GROUP g c STREAMS bar >
SORT bar BY x*
SORT foo BY x*
SORT hello BY x*
SORT bar BY nosort
SORT bar BY nosort GET y*
SORT foo BY nosort GET y*
SORT bar STORE foo
SORT_RO bar
RENAME bar foo
RENAME hello {hello}y
OBJECT ENCODING foo
OBJECT HELP
BLPOP foo bar 0
BLPOP {hello}q foo 0
INFO cluster
REPLICAOF 127.0.0.1 1
SLAVEOF no one
TIME x
GET
GET a b c
FLUSHALL
DBSIZE
SSUBSCRIBE foo bar
SSUBSCRIBE nowhere{foo} nowhere{bar}
"""


def test_the_replies_are_those_of_a_redis_cluster(ours: Ours, theirs: Theirs, protocol: int) -> None:
    for place in range(3):
        mine, real = (members.servers[place].wire(protocol) for members in (ours, theirs))
        with mine, real:
            for line in STORY.split("\n"):
                words = line.encode().split()
                if words:
                    assert known(ours, mine.ask(*words)) == known(theirs, real.ask(*words)), (place, line)


def test_members_are_shown_as_redis_shows_nodes(ours: Ours, theirs: Theirs, protocol: int) -> None:
    for words in ([b"SLOTS"], [b"NODES"], [b"SHARDS"]):
        shown = []
        for members in (ours, theirs):
            with members.servers[1].wire(protocol) as wire:
                reply = known(members, wire.ask(b"CLUSTER", *words))
            ends = {b"SLOTS": rb"\*3\r\n:", b"NODES": rb"\n", b"SHARDS": rb"(?=\*4\r\n\$5\r\nslots|%2\r\n\$5\r\nslots)"}
            shown.append(sorted(re.split(ends[words[0]], reply)))
        assert shown[0] == shown[1], words


def test_slots_of_keys_are_redis_s(ours: Ours, theirs: Theirs) -> None:
    dice = random.Random(5)
    with ours.servers[0].wire() as mine, theirs.servers[0].wire() as real:
        for _ in range(500):
            key = bytes(dice.choices(b"ab{}\0\xff", k=dice.randrange(12)))
            assert mine.ask(b"CLUSTER", b"KEYSLOT", key) == real.ask(b"CLUSTER", b"KEYSLOT", key), key


def nodes(members: Members) -> list[ClusterNode]:
    return [ClusterNode("127.0.0.1", port) for port in members.ports[:1]]


def test_redis_py_s_cluster_client_finds_every_key(ours: Ours, protocol: int) -> None:
    with RedisCluster(startup_nodes=nodes(ours), protocol=protocol) as client:
        for number in range(100):
            client.set(f"key-{number}", number)
            client.xadd(f"stream-{number}", {"n": number})
        assert [client.get(f"key-{number}") for number in range(100)] == [b"%d" % number for number in range(100)]
        pipe = client.pipeline()
        for number in range(100):
            pipe.get(f"key-{number}")
        assert pipe.execute() == [b"%d" % number for number in range(100)]
        assert client.mget_nonatomic("key-1", "key-2") == [b"1", b"2"]
        client.execute_command("QUEUE.CREATE", "jobs")
        assert client.dbsize(target_nodes="primaries") == 201
        client.flushall(target_nodes="primaries")
    assert [server.client().dbsize() for server in ours.servers] == [0, 0, 0]


def test_redis_py_s_asyncio_cluster_client_finds_every_key(ours: Ours) -> None:
    async def main() -> list[bytes]:
        async with redis.asyncio.RedisCluster("127.0.0.1", ours.ports[2]) as client:
            for number in range(50):
                await client.set(f"key-{number}", number)
            return [await client.get(f"key-{number}") for number in range(50)]

    assert asyncio.run(main()) == [b"%d" % number for number in range(50)]


@pytest.mark.skipif(NODE is None or not (HERE / "node_modules").is_dir(), reason="no node, or no node_modules")
def test_ioredis_s_cluster_client_tells_the_same_story(ours: Ours, theirs: Theirs) -> None:
    stories = []
    for members in (ours, theirs):
        done = subprocess.run(
            [str(NODE), str(HERE / "node" / "ioredis-cluster.mjs"), str(members.ports[0])],
            capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        stories.append(done.stdout)
    assert stories[0] == stories[1]
    assert stories[0].splitlines()[-1] == '["all",100]'


def test_a_store_without_a_directory_is_no_cluster(tmp_path: Path) -> None:
    server = start_ours(tmp_path)
    try:
        with server.client() as client:
            assert client.info("cluster")["cluster_enabled"] == 0
            with pytest.raises(redis.ResponseError, match="cluster support disabled"):
                client.execute_command("CLUSTER", "SLOTS")
            client.select(3)
    finally:
        server.stop()


def test_keys_stay_where_they_are_when_a_whole_is_made(tmp_path: Path) -> None:
    servers = []
    for number in range(2):
        (tmp_path / f"{number}").mkdir()
        servers.append(SocketServer("ours", OURS, tmp_path / f"{number}"))
    try:
        for number, server in enumerate(servers):
            with server.client() as client:
                for key in range(200):
                    if key % 2 == number:
                        client.set(f"key-{key}", key)
        addresses = [f"127.0.0.1:{server.port}" for server in servers]
        whole = shard("create", *addresses)
        assert "200" not in whole and whole.count("100") >= 2
        with RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", servers[1].port)]) as client:
            assert [client.get(f"key-{key}") for key in range(200)] == [b"%d" % key for key in range(200)]
        assert shard("create", *addresses) == whole, "to say it once more changes nothing"
    finally:
        for server in servers:
            server.stop()


def test_a_member_that_was_killed_comes_back_with_its_slots(tmp_path: Path) -> None:
    members = Ours(tmp_path, 2)
    try:
        before = members.runs()
        members.kill(0)
        members.start(0)
        assert members.runs() == before
    finally:
        members.stop()
