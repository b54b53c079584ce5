"""A redis-server as replica of ours, while keys go that nobody has removed, arrive from elsewhere, or are topics with
more to them than Redis knows."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from patience import PATIENCE_S, until

import rlite_pubsub
from compat_tests.servers import SocketServer
from compat_tests.test_master import assert_same, follow, has_caught_up, start_ours, start_redis
from compat_tests.test_moving import digest, fill
from compat_tests.wholes import Ours, shard
from compat_tests.wire import request


class Pair:
    """A store's server, and a redis-server that is its replica."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.master = start_ours(folder / "store", *options)
        self.replica = start_redis(folder / "redis")
        self.here: Any = self.master.client()
        self.there: Any = self.replica.client()

    def follow(self) -> None:
        follow(self.replica, self.master)

    def assert_same(self) -> None:
        assert_same(self.master, self.replica)

    @property
    def log(self) -> str:
        return (self.folder / "store" / "server.log").read_text(errors="replace")

    def kill(self) -> None:
        """The store's server, as by kill -9."""
        self.master._process.kill()
        self.master._process.wait()

    def start(self, *options: str) -> None:
        """The store's server, once more: the replica goes on with it."""
        self.master.stop()
        self.master = start_ours(self.folder / "store", *options)
        self.here = self.master.client()
        self.there.execute_command("REPLICAOF", "127.0.0.1", self.master.port)
        until(lambda: has_caught_up(self.here, self.there), "the replica has caught up")

    def stop(self) -> None:
        self.here.close()
        self.there.close()
        self.master.stop()
        self.replica.stop()


@pytest.fixture
def start_pair(tmp_path: Path) -> Iterator[Callable[..., Pair]]:
    pairs: list[Pair] = []

    def start(*options: str) -> Pair:
        pairs.append(Pair(tmp_path, *options))
        return pairs[-1]

    yield start
    for pair in pairs:
        pair.stop()


@pytest.fixture
def pair(start_pair: Callable[..., Pair]) -> Pair:
    return start_pair()


# -- keys that come from elsewhere, and go there


def test_what_is_restored_and_what_is_migrated_is_the_same_on_the_replica(tmp_path: Path, pair: Pair) -> None:
    other = start_redis(tmp_path / "other")
    try:
        with other.client() as away:
            fill(pair.here)
            pair.follow()
            keys: list[bytes] = pair.here.keys()
            for number, key in enumerate(keys[:120]):
                payload = pair.here.dump(key)
                pair.here.restore(b"copy:" + key, (0, 5_000_000)[number % 2], payload)
                pair.here.restore(key, 4_000_000_000_000, payload, replace=True, absttl=True)
                pair.here.restore(b"past:" + key, 1, payload, absttl=True)
            pair.assert_same()
            moved = [key for key in keys[120:240]]
            assert pair.here.migrate("127.0.0.1", other.port, moved[:60], 0, 20_000) == b"OK"
            assert pair.here.migrate("127.0.0.1", other.port, moved[60:], 0, 20_000, copy=True) == b"OK"
            assert (away.dbsize(), pair.here.exists(*moved)) == (120, 60)
            pair.assert_same()
            assert away.migrate("127.0.0.1", pair.master.port, moved, 0, 20_000, replace=True) == b"OK"
            assert pair.here.exists(*moved) == 120
            pair.assert_same()
    finally:
        other.stop()


def test_keys_that_are_evicted_are_gone_on_the_replica(pair: Pair) -> None:
    pair.follow()
    pair.here.config_set("maxmemory-policy", "allkeys-lru")
    pair.here.config_set("maxmemory", "4mb")
    for number in range(1000):
        pair.here.set(f"k{number}", bytes([number % 256]) * 10_000)
        pair.here.rpush(f"l{number % 50}", b"x" * 2000)
    assert pair.here.info("stats")["evicted_keys"] > 50
    pair.assert_same()


def test_keys_whose_time_is_over_are_gone_on_the_replica_though_nobody_asks_for_them(pair: Pair) -> None:
    pair.follow()
    pipe = pair.here.pipeline(transaction=False)
    for number in range(500):
        pipe.set(f"k{number}", number, px=1 + number % 200)
        pipe.hset(f"h{number}", "f", number)
        pipe.pexpire(f"h{number}", 100)
        pipe.xadd(f"x{number % 9}", {"f": number})
        pipe.pexpire(f"x{number % 9}", 300)
    pipe.set("stays", 1)
    pipe.execute()
    until(lambda: pair.there.dbsize() == 1, "only one is left there")
    assert pair.here.keys() == [b"stays"]
    pair.assert_same()


def test_fields_that_expire_go_on_the_replica_when_they_go_here_and_the_log_says_so(pair: Pair) -> None:
    pair.here.hset("before", mapping={"a": 1, "b": 2})
    pair.here.execute_command("HPEXPIRE", "before", 1500, "FIELDS", 1, "a")
    pair.follow()
    assert "fields that expire" in pair.log
    pair.here.hset("h", mapping={"a": 1, "b": 2, "c": 3})
    pair.here.hset("whole", mapping={"a": 1})
    pair.here.execute_command("HPEXPIRE", "h", 1200, "FIELDS", 2, "a", "b")
    pair.here.execute_command("HPEXPIRE", "whole", 1200, "FIELDS", 1, "a")
    pair.here.execute_command("HPERSIST", "h", "FIELDS", 1, "b")
    pair.here.execute_command("HPEXPIRE", "h", 0, "FIELDS", 1, "c")
    until(lambda: has_caught_up(pair.here, pair.there), "it is told")
    assert pair.there.hget("h", "c") is None
    until(lambda: not pair.there.exists("whole"), "it has no fields any more")
    until(lambda: pair.there.hkeys("h") == [b"b"], "the field is gone")
    until(lambda: pair.there.hkeys("before") == [b"b"], "the field of before is gone")
    pair.assert_same()


# -- the link


def test_a_replica_that_says_nothing_for_repl_timeout_is_cut_off(start_pair: Callable[..., Pair]) -> None:
    pair = start_pair("--repl-timeout", "2")
    with pair.master.wire() as wire:
        wire.send(request(b"REPLCONF", b"capa", b"psync2") + request(b"PSYNC", b"?", b"-1"))
        until(lambda: pair.here.info("replication").get("slave0", {}).get("state") == "online", "it is sent the stream")
        pair.follow()
        until(lambda: pair.here.info("replication")["connected_slaves"] == 1, "the silent one is cut off")
    assert "it has said nothing for too long" in pair.log
    pair.assert_same()


def test_a_user_may_replicate_with_the_rights_that_redis_asks_for(tmp_path: Path, pair: Pair) -> None:
    """The same on both sides: a replica of ours, and one of a redis-server's."""
    theirs = start_redis(tmp_path / "theirs")
    try:
        with theirs.client() as master:
            for server, client in ((pair.master, pair.here), (theirs, master)):
                client.set("a", server.port)
                client.execute_command("ACL", "SETUSER", "r", "on", ">p", "+psync", "+replconf", "+ping")
                client.execute_command("ACL", "SETUSER", "none", "on", ">p", "+ping")
                client.execute_command("ACL", "SETUSER", "default", ">root")
                client.execute_command("AUTH", "root")
                refused = client.acl_log
                for user, comes in (("none", False), ("r", True)):
                    pair.there.config_set("masteruser", user)
                    pair.there.config_set("masterauth", "p")
                    pair.there.execute_command("REPLICAOF", "127.0.0.1", server.port)
                    if comes:
                        until(lambda: pair.there.info("replication")["master_link_status"] == "up", "it follows")
                        assert pair.there.get("a") == b"%d" % server.port
                    else:
                        until(refused, "refused")
                        assert pair.there.info("replication")["master_link_status"] == "down"
                pair.there.execute_command("REPLICAOF", "NO", "ONE")
                pair.there.config_set("masteruser", "")
                pair.there.config_set("masterauth", "")
    finally:
        theirs.stop()


def test_what_all_workers_of_a_server_do_reaches_a_replica(start_pair: Callable[..., Pair]) -> None:
    pair = start_pair("--workers", "2")
    clients = [pair.master.client() for _ in range(8)]
    fill(pair.here)
    pair.follow()
    for number in range(400):
        client = clients[number % 8]
        client.rpush("order", number)
        client.xadd("x", {"n": number})
        with client.pipeline() as pipe:
            pipe.incr("a")
            pipe.spop("set1")
            pipe.execute()
    pair.assert_same()
    assert pair.there.lrange("order", 0, -1) == [b"%d" % number for number in range(400)]
    assert clients[3].wait(1, 20_000) == 1
    for client in clients:
        client.close()


def test_functions_are_the_same_after_each_kill(pair: Pair) -> None:
    pair.follow()

    def library(name: str, number: int) -> str:
        return f"#!lua name={name}\nredis.register_function('{name}f', function(k) return {number} end)"

    def codes(client: redis.Redis) -> list[Any]:
        return sorted(map(str, client.function_list(withcode=True)))

    for number in range(3):
        pair.here.function_load(library("one", number), replace=True)
        pair.here.function_load(library(f"l{number}", number))
        if number == 1:
            pair.here.function_delete("l0")
        if number == 2:
            pair.here.function_flush()
            pair.here.function_load(library("last", 1))
        pair.here.set("a", number)
        pair.kill()
        pair.start()
        until(lambda: codes(pair.here) == codes(pair.there), "the same libraries")
        assert pair.here.info("stats")["sync_full"] == 0, "it was resumed"
        assert pair.there.get("a") == b"%d" % number
    assert len(codes(pair.there)) == 1


# -- topics


def test_what_topics_and_queues_do_reaches_a_replica_as_streams(pair: Pair) -> None:
    do = pair.here.execute_command
    pair.follow()
    do("TOPIC.CREATE", "t")
    do("TOPIC.CONFIG", "t", "SET", "RETAIN-LENGTH", 50)
    for number in range(120):
        do("XADD", "t", "*", "f", number)
    do("XGROUP", "CREATE", "t", "g", 0)
    for _, entries in do("XREADGROUP", "GROUP", "g", "c", "COUNT", 10, "STREAMS", "t", ">"):
        do("TOPIC.REQUEUE", "t", "g", entries[0][0])
    seconds, micros = pair.here.time()
    due = seconds * 1000 + micros // 1000 + 2000
    for number in range(5):
        do("TOPIC.DEFER", "later", due, "f", number)
    do("QUEUE.CREATE", "q")
    do("QUEUE.SUBSCRIBER", "q", "s")
    do("QUEUE.PUSH", "q", *range(20))
    for _ in range(7):
        do("QUEUE.POP", "q", "s")
    do("QUEUE.SLEEP", "q", "s")
    do("TOPIC.PAUSE", "t", "g")
    until(lambda: pair.there.xlen("later") == 5, "what was deferred has come")
    do("TOPIC.RESUME", "t", "g")
    do("QUEUE.WAKEUP", "q", "s")
    do("TOPIC.EMPTY", "t")
    do("XADD", "t", "*", "f", "again")
    do("TOPIC.DELETE", "later")
    do("QUEUE.DELETE", "q")
    pair.assert_same()


COLD = ("--cold-store", "local", "--cold-block-size", "64kb", "--cold-grace", "5")


def test_a_topic_that_is_mostly_in_the_cold_store_is_whole_on_the_replica(start_pair: Callable[..., Pair]) -> None:
    pytest.importorskip("pyarrow")
    pair = start_pair(*COLD)

    def cold_entries() -> int:
        with pair.master.client(protocol=3) as client:
            return int(client.execute_command("TOPIC.INFO", "t")[b"cold-entries"])

    def append(count: int) -> None:
        pipe = pair.here.pipeline(transaction=False)
        for number in range(count):
            pipe.xadd("t", {"f": f"{number:0100}"})
        pipe.execute()

    append(4000)
    until(lambda: cold_entries() > 2500, "blocks")
    ids = [entry_id for entry_id, _ in pair.here.xrange("t", count=900)]
    pair.here.xdel("t", ids[100], ids[800])
    pair.here.xgroup_create("t", "g", ids[5])
    pair.here.xreadgroup("g", "c", {"t": ">"}, count=50)
    pair.follow()
    pair.assert_same()
    assert pair.there.xlen("t") == 3998
    before = cold_entries()
    append(3000)
    until(lambda: cold_entries() > before, "more blocks, while it is followed")
    pair.here.xdel("t", ids[300])
    pair.here.xtrim("t", maxlen=6000, approximate=False)
    pair.here.copy("t", "u")
    pair.here.rename("t", "v")
    pair.assert_same()


def test_what_a_member_of_a_whole_gives_and_takes_its_replica_loses_and_has(tmp_path: Path) -> None:
    whole = Ours(tmp_path, 2)
    replicas = [start_redis(tmp_path / f"redis{number}") for number in range(2)]
    try:
        for server, replica in zip(whole.servers, replicas, strict=True):
            follow(replica, server)
        with redis.RedisCluster(host="127.0.0.1", port=whole.ports[0]) as client:
            for number in range(40):
                client.set(f"{{jobs}}s{number}", number, ex=[None, 5000][number % 2])
                client.hset(f"{{jobs}}h{number}", "f", number)
                client.xadd(f"{{jobs}}x{number}", {"f": number})
                client.xgroup_create(f"{{jobs}}x{number}", "g", 0)
                client.xreadgroup("g", "c", {f"{{jobs}}x{number}": ">"})
        for target in (0, 1, 0):
            shard("move", whole.addresses[0], whole.addresses[target], "{jobs}")
            for server, replica in zip(whole.servers, replicas, strict=True):
                with server.client() as mine, replica.client() as yours:
                    until(lambda: digest(mine) == digest(yours), "the same digest")  # noqa: B023
            with replicas[target].client() as there, replicas[1 - target].client() as gave:
                assert (there.dbsize(), gave.dbsize()) == (120, 0)
    finally:
        for replica in replicas:
            replica.stop()
        whole.stop()


def test_a_cold_topic_that_moves_between_members_is_whole_on_the_replica_of_who_has_it(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    whole = Ours(tmp_path, 2, *COLD)
    replicas = [start_redis(tmp_path / f"redis{number}") for number in range(2)]
    try:
        with redis.RedisCluster(host="127.0.0.1", port=whole.ports[0]) as client:
            holder = whole.ports.index(client.get_node_from_key("t").port)
            pipe = client.pipeline()
            for number in range(4000):
                pipe.xadd("t", {"f": f"{number:0100}"})
            ids = pipe.execute()
            with whole.servers[holder].client(protocol=3) as mine:
                until(lambda: mine.execute_command("TOPIC.INFO", "t")[b"cold-entries"] > 2500, "blocks")
            client.xdel("t", ids[100], ids[800])
            client.xtrim("t", maxlen=3990, approximate=False)
            client.xgroup_create("t", "g", ids[20])
            client.xreadgroup("g", "c", {"t": ">"}, count=50)
            entries = client.xrange("t")
            for server, replica in zip(whole.servers, replicas, strict=True):
                follow(replica, server)
            for target in (1 - holder, holder, 1 - holder):
                shard("move", whole.addresses[0], whole.addresses[target], "t")
                entries.append((client.xadd("t", {"f": "behind"}), {b"f": b"behind"}))
                for server, replica in zip(whole.servers, replicas, strict=True):
                    with server.client() as mine, replica.client() as yours:
                        until(lambda: digest(mine) == digest(yours), "the same digest")  # noqa: B023
                with replicas[target].client() as there, replicas[1 - target].client() as gave:
                    assert there.xrange("t") == entries
                    assert there.xpending("t", "g")["pending"] == 50
                    assert gave.dbsize() == 0
    finally:
        for replica in replicas:
            replica.stop()
        whole.stop()


# -- messages, libraries, and the stream's end


MESSAGES = 300


def test_messages_of_a_program_that_only_publishes_reach_the_replica_in_order(pair: Pair) -> None:
    """It has no keys to do with, and has published before anybody replicated."""
    with rlite_pubsub.Redis(pair.folder / "store") as program, pair.there.pubsub() as pubsub:
        program.publish("news", "before")
        pair.follow()
        pubsub.subscribe("news")
        assert pubsub.get_message(timeout=PATIENCE_S)
        for number in range(MESSAGES):
            program.publish("news", number)
        heard: list[bytes] = []
        while len(heard) < MESSAGES:
            message = pubsub.get_message(timeout=PATIENCE_S)
            assert message is not None, heard
            heard.append(message["data"])
        assert heard == [b"%d" % number for number in range(MESSAGES)]
        assert program.wait(1, 20_000) == 1
    pair.assert_same()


def test_another_server_s_libraries_and_messages_are_told_though_it_has_no_keys_to_do_with(pair: Pair) -> None:
    code = "#!lua name=lib\nredis.register_function('f', function(k) return 1 end)"
    fellow = start_ours(pair.folder / "store")
    try:
        with fellow.client() as beside, pair.there.pubsub() as pubsub:
            beside.publish("news", "before")
            pair.follow()
            pubsub.subscribe("news")
            assert pubsub.get_message(timeout=PATIENCE_S)
            beside.publish("news", "hello")
            message = pubsub.get_message(timeout=PATIENCE_S)
            assert message is not None and message["data"] == b"hello"
            beside.function_load(code)
            assert beside.wait(1, 20_000) == 1
            assert [library[1] for library in pair.there.function_list()] == [b"lib"]
    finally:
        fellow.stop()


def test_a_replica_of_ours_hands_on_the_libraries_of_its_new_master(tmp_path: Path, pair: Pair) -> None:
    first = start_redis(tmp_path / "first")
    try:
        with first.client() as origin:
            fill(origin)  # with a library
            pair.here.function_load("#!lua name=old\nredis.register_function('o', function(k) return 1 end)")
            pair.follow()
            pair.here.execute_command("REPLICAOF", "127.0.0.1", first.port)
            until(lambda: pair.here.info("replication")["master_link_status"] == "up", "the first link")
            until(lambda: [each[1] for each in pair.there.function_list()] == [b"lib"], "the first one's library")
    finally:
        first.stop()


def test_the_stream_ends_when_no_replica_was_there_for_repl_backlog_ttl(tmp_path: Path, pair: Pair) -> None:
    """As a redis-server's backlog does: whoever comes later begins anew, and goes on where it was before that."""
    theirs = start_redis(tmp_path / "theirs")
    behind = start_redis(tmp_path / "behind")
    try:
        for server, replica in ((pair.master, pair.replica), (theirs, behind)):
            with server.client() as here, replica.client() as there:
                follow(replica, server)
                for ttl_s, full in ((3600, 1), (1, 2), (3600, 2)):
                    here.config_set("repl-backlog-ttl", ttl_s)
                    there.execute_command("REPLICAOF", "127.0.0.1", 1)  # where nobody is
                    until(lambda: not here.info("replication")["connected_slaves"], "it is gone")  # noqa: B023
                    if ttl_s == 1:
                        until(lambda: not here.info("replication")["repl_backlog_active"], "its end")  # noqa: B023
                    here.incr("a")
                    follow(replica, server)
                    assert here.info("stats")["sync_full"] == full, server.name
                    assert there.get("a") == here.get("a")
    finally:
        theirs.stop()
        behind.stop()


# -- what exactly is told


REQUESTS = """
SET a 1|SET a 2 KEEPTTL|INCRBYFLOAT f 1.5|HINCRBYFLOAT h f 2.25|RPUSH l 1 2 3 4|LMPOP 2 none l LEFT COUNT 2
ZADD z 1 a 2 b 3 c|ZMPOP 1 z MAX COUNT 2|BZMPOP 1 1 z MIN|PEXPIREAT a 4000000000000|GETEX a PERSIST
MULTI|SET b 1|EXEC|MULTI|SET b 2|SET c 3|GET b|EXEC|SELECT 3|SET d 1|FLUSHALL|FLUSHALL ASYNC|FLUSHDB
SET d 1|SELECT 0|SET e 1
EVAL "redis.call('set',KEYS[1],1)redis.call('incrbyfloat',KEYS[1],1)" 1 s|SADD one m|SPOP one
XADD x 1-1 f v|XADD x 2-1 f v|XADD y 1-1 f v g w|DEL y|XADD y 2-1 f v|PUBLISH c 1|SELECT 4|PUBLISH c 2|SELECT 0
MULTI|PUBLISH c 3|SET m 1|PUBLISH c 4|EXEC|EVAL "redis.call('publish','c',5)redis.call('set',KEYS[1],1)" 1 s
MULTI|SET b 3|WAIT 0 1|ROLE|SET c 4|EXEC|SET text 1|RPUSH list 1 2 3
"""
BLOCKED = """BLMPOP 0 1 bl LEFT COUNT 5|LPUSH bl a b
BZMPOP 0 1 bz MIN COUNT 5|ZADD bz 1 a 2 b
BLPOP bl 0|RPUSH bl a b c
BLMOVE bm other left right 0|MULTI|DEL bl|RPUSH bm x y|EXEC"""


def stream_of(server: SocketServer) -> list[list[bytes]]:
    """What a replica is told of `REQUESTS`, of `BLOCKED` (each line's first waits for the others) and of RESTORE."""
    told: list[list[bytes]] = []
    with socket.create_connection(("127.0.0.1", server.port)) as connection, server.wire() as wire:
        file = connection.makefile("rb")
        connection.sendall(request(b"SYNC"))
        while not (line := file.readline()).startswith(b"$"):
            assert line == b"\n"
        file.read(int(line[1:]))
        for words in REQUESTS.replace("\n", "|").strip("|").split("|"):
            wire.ask(*map(str.encode, shlex.split(words)))
        for line in BLOCKED.split("\n"):
            first, *others = [[word.encode() for word in words.split()] for words in line.split("|")]
            with server.wire() as waiting, server.client() as control:
                waiting.say(*first)
                until(lambda: control.info("clients")["blocked_clients"] == 1, "it waits")  # noqa: B023
                for one in others:
                    wire.ask(*one)
                until(lambda: control.info("clients")["blocked_clients"] == 0, "it was served")  # noqa: B023
        with server.client() as client:
            for name in ("text", "list", "x"):
                payload = client.dump(name)
                wire.ask(b"restore", b"of " + name.encode(), b"0", payload)
                wire.ask(b"RESTORE", b"of " + name.encode(), b"4000000000000", payload, b"REPLACE", b"absttl")
                wire.ask(b"RESTORE", b"past " + name.encode(), b"1", payload, b"ABSTTL")
                wire.ask(b"RESTORE", b"of " + name.encode(), b"1", payload, b"ABSTTL", b"REPLACE")
        wire.ask(b"SET", b"end", b"1")
        while not told or told[-1][1:2] != [b"end"]:
            words_of = [file.read(int(file.readline()[1:]) + 2)[:-2] for _ in range(int(file.readline()[1:]))]
            if words_of != [b"PING"]:
                told.append([words_of[0].upper(), *words_of[1:]])
    return told


def test_a_replica_is_told_what_redis_tells_its_own(tmp_path: Path, pair: Pair) -> None:
    theirs = start_redis(tmp_path / "theirs")
    try:
        assert stream_of(pair.master) == stream_of(theirs)
    finally:
        theirs.stop()


def test_what_was_queued_before_the_master_was_lost_is_not_executed(pair: Pair) -> None:
    for client, server in ((pair.here, pair.master), (pair.there, pair.replica)):
        client.config_set("replica-serve-stale-data", "no")
        with server.wire() as wire:
            for words in ((b"MULTI",), (b"GET", b"a")):
                wire.ask(*words)
            client.execute_command("REPLICAOF", "127.0.0.1", 1)
            assert b"EXECABORT Transaction discarded because of: MASTERDOWN" in bytes(wire.ask(b"EXEC"))
            client.execute_command("REPLICAOF", "NO", "ONE")
