"""A redis-server as replica of ours: it has the same keys, whatever is done here, and whatever happens to the link."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis
from patience import PATIENCE_S, until
from stopped_writer import StoppedWriter

import rlite_pubsub
from compat_tests import (
    collection_commands,
    function_commands,
    geo_commands,
    group_commands,
    key_commands,
    script_commands,
    sort_commands,
    sorted_set_commands,
    stream_commands,
)
from compat_tests.servers import REDIS_CLI, REDIS_SERVER, SocketServer
from compat_tests.test_moving import digest, fill
from compat_tests.wire import request

OURS = [sys.executable, "-m", "rlite_pubsub", "serve", "--repl-ping-replica-period", "1"]
REQUESTS = 1500
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 200)) // 200)
DATABASES = range(16)


def start_redis(folder: Path, *options: str) -> SocketServer:
    if REDIS_SERVER is None:
        pytest.skip("there is no redis-server")
    folder.mkdir(exist_ok=True)
    return SocketServer("redis", [REDIS_SERVER, "--save", "", "--repl-diskless-sync-delay", "0", *options], folder)


def start_ours(folder: Path, *options: str) -> SocketServer:
    folder.mkdir(exist_ok=True)
    return SocketServer("ours", [*OURS, *options], folder)


@pytest.fixture
def master(tmp_path: Path) -> Iterator[SocketServer]:
    server = start_ours(tmp_path / "store")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[SocketServer]:
    server = start_redis(tmp_path / "redis")
    try:
        yield server
    finally:
        server.stop()


def follow(replica: SocketServer, master: SocketServer) -> None:
    """Attached, and with all that there is."""
    with replica.client() as there, master.client() as here:
        assert there.execute_command("REPLICAOF", "127.0.0.1", master.port)
        until(lambda: has_caught_up(here, there), "the replica has caught up")


def has_caught_up(master: redis.Redis, replica: redis.Redis) -> bool:
    there, here = master.info("replication"), replica.info("replication")
    return bool(
        here["role"] == "slave"
        and here["master_link_status"] == "up"
        and here["slave_repl_offset"] >= there["master_repl_offset"]
    )


def known(server: SocketServer) -> dict[tuple[int, bytes], Any]:
    """All keys: type, value and when it expires; of a stream its groups, but for what is said of times and nodes."""
    found: dict[tuple[int, bytes], Any] = {}
    with server.client(protocol=3) as client:
        for database in DATABASES:
            client.execute_command("SELECT", database)
            keys = client.keys()
            pipe = client.pipeline(transaction=False)
            pipe.execute_command("SELECT", database)
            for key in keys:
                pipe.type(key)
                pipe.execute_command("DEBUG", "DIGEST-VALUE", key)
                pipe.pexpiretime(key)
                pipe.execute_command("XINFO", "STREAM", key, "FULL", "COUNT", 0)
            said = pipe.execute(raise_on_error=False)[1:]
            for at, key in enumerate(keys):
                kind, value, until_ms, stream = said[4 * at : 4 * at + 4]
                found[database, key] = kind, value, until_ms, timeless(stream) if kind == b"stream" else None
    return found


LEFT_OUT = (b"radix-tree-keys", b"radix-tree-nodes", b"seen-time", b"active-time", b"entries")


def timeless(said: Any) -> Any:
    """A map, and the maps in it, without some of their names."""
    if isinstance(said, dict):
        return {name: timeless(value) for name, value in said.items() if name not in LEFT_OUT}
    return [timeless(each) for each in said] if isinstance(said, list) else said


def assert_same(master: SocketServer, replica: SocketServer, said: object = "") -> None:
    with master.client() as here, replica.client() as there:
        different: object = None
        for _ in range(5):  # a key may expire in between
            until(lambda: has_caught_up(here, there), "the replica has caught up")
            if digest(here) == digest(there):
                mine, theirs = known(master), known(replica)
                if mine == theirs:
                    return
            mine, theirs = known(master), known(replica)
            different = {key: (mine.get(key), theirs.get(key)) for key in mine | theirs
                         if mine.get(key) != theirs.get(key)}  # fmt: skip
        raise AssertionError(f"{str(different)[:3000]} after {said}")


class Requests(Protocol):
    def next(self) -> list[bytes]: ...


KINDS: dict[str, Any] = {
    module.__name__.rpartition(".")[2]: module.Requests  # type: ignore[attr-defined]
    for module in (
        collection_commands,
        function_commands,
        geo_commands,
        group_commands,
        key_commands,
        script_commands,
        sort_commands,
        sorted_set_commands,
        stream_commands,
    )
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_has_what_random_requests_leave(
    master: SocketServer, replica: SocketServer, kind: str, seed: int
) -> None:
    with master.client() as client:
        fill(client)
    follow(replica, master)
    requests: Requests = KINDS[kind](seed)
    said: list[list[bytes]] = []
    with master.wire() as wire:
        for number in range(REQUESTS):
            words = requests.next()
            said.append(words)
            wire.ask(*words)
            if number % 300 == 299:
                assert_same(master, replica, said[-300:])


def test_functions_and_messages_reach_a_replica(master: SocketServer, replica: SocketServer) -> None:
    code = "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)"
    with master.client() as here, replica.client() as there:
        follow(replica, master)
        pubsub = there.pubsub()
        pubsub.subscribe("news")
        assert pubsub.get_message(timeout=5)
        here.function_load(code)
        here.publish("news", "hello")
        message = None
        for _ in range(100):
            message = message or pubsub.get_message(timeout=0.1)
        assert message is not None and message["data"] == b"hello"
        until(lambda: there.function_list(), "the library")
        here.fcall("f", 1, "a")
        assert_same(master, replica)
        here.function_delete("lib")
        until(lambda: not there.function_list(), "it is gone")
        pubsub.close()


def test_a_replica_that_is_cut_off_goes_on_where_it_was(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as here:
        fill(here)
        follow(replica, master)
        for number in range(5):
            here.client_kill_filter(_type="replica")
            here.incr("a", number)
            here.xadd("x", {"a": number})
            assert_same(master, replica)
        stats = here.info("stats")
        assert (stats["sync_full"], stats["sync_partial_ok"]) == (1, 5)


def test_a_master_that_is_killed_comes_back_with_the_same_history(tmp_path: Path, replica: SocketServer) -> None:
    folder = tmp_path / "store"
    master = start_ours(folder)
    try:
        follow(replica, master)
        for number in range(3):
            with master.client() as here:
                pipe = here.pipeline(transaction=False)
                for i in range(500):
                    pipe.incr(f"n{i % 7}")
                    pipe.xadd("x", {"i": i})
                    pipe.spop("s")
                    pipe.sadd("s", i, number)
                pipe.execute()
                here.set("last", number)
                master._process.kill()
            master.stop()
            master = start_ours(folder)
            with replica.client() as there, master.client() as here:
                there.execute_command("REPLICAOF", "127.0.0.1", master.port)  # which keeps what it knows of the history
                assert_same(master, replica)
                assert here.info("stats")["sync_full"] == 0, "it was resumed"
                assert there.get("last") == str(number).encode()
    finally:
        master.stop()


def test_a_replica_that_says_nothing_counts_as_good_for_a_while_only(master: SocketServer) -> None:
    with master.client() as here, master.wire() as wire:
        wire.say(b"SYNC")
        until(lambda: here.info("replication").get("slave0", {}).get("state") == "online", "it has its file")
        assert here.info("replication")["slave0"]["lag"] < 2
        here.config_set("min-replicas-to-write", 1)
        here.config_set("min-replicas-max-lag", 2)
        here.set("key", 1)
        until(lambda: here.info("replication")["slave0"]["lag"] > 2, "it has said nothing since")
        with pytest.raises(redis.ResponseError, match="NOREPLICAS"):
            here.set("key", 2)


def test_what_other_processes_of_the_store_do_reaches_the_replica_in_order(
    tmp_path: Path, master: SocketServer, replica: SocketServer
) -> None:
    fellow = start_ours(tmp_path / "store")
    try:
        with master.client() as here, fellow.client() as beside, rlite_pubsub.Redis(tmp_path / "store") as program:
            fill(beside)
            follow(replica, master)
            speakers: list[redis.Redis] = [here, beside, program]
            for number in range(600):
                one = speakers[number % 3]
                one.rpush("order", number)
                one.xadd("x", {"n": number})
                one.incr("count")
                if number % 50 == 0:
                    one.spop("set1")
                    with one.pipeline() as pipe:
                        pipe.set("a", number)
                        pipe.set("b", number)
                        pipe.execute()
            assert_same(master, replica)
            with replica.client() as there:
                assert there.lrange("order", 0, -1) == [b"%d" % number for number in range(600)]
                assert there.get("count") == b"600"
            assert beside.wait(1, 20_000) == 1, "it acknowledges to all of them"
            assert [each["role"] for each in (here.info("replication"), beside.info("replication"))] == ["master"] * 2
            assert beside.info("replication")["connected_slaves"] == 1
    finally:
        fellow.stop()


def test_a_message_that_was_heard_in_another_process_reaches_the_replica_however_soon_its_publisher_dies(
    tmp_path: Path, master: SocketServer, replica: SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("RLITE_FAILPOINT", "publish-rung")
        fellow = start_ours(tmp_path / "store")
    follow(replica, master)
    with master.client() as here, replica.client() as there, fellow.wire() as beside:
        heard = {server: server.pubsub() for server in (here, there)}
        for pubsub in heard.values():
            pubsub.subscribe("news")
            assert pubsub.get_message(timeout=PATIENCE_S)
        beside.say(b"PUBLISH", b"news", b"one")
        assert beside.read_to_end() == b""
        here.publish("news", "two")
        for pubsub in heard.values():
            found = [pubsub.get_message(timeout=PATIENCE_S) for _ in range(2)]
            assert [message["data"] for message in found if message] == [b"one", b"two"]
    fellow.stop()


def test_a_message_is_heard_in_another_process_once_the_replica_s_stream_has_it(
    tmp_path: Path, master: SocketServer, replica: SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes keys meanwhile keeps it from both; its publisher dies when it was heard."""
    with monkeypatch.context() as patch:
        patch.setenv("RLITE_FAILPOINT", "publish-rung")
        fellow = start_ours(tmp_path / "store", "--writer-patience", str(int(PATIENCE_S)))
    follow(replica, master)
    with master.client() as here, replica.client() as there, fellow.wire() as beside, fellow.client() as asking:
        heard = {server: server.pubsub() for server in (here, there)}
        for pubsub in heard.values():
            pubsub.subscribe("news")
            assert pubsub.get_message(timeout=PATIENCE_S)
        with StoppedWriter(tmp_path / "store") as writer:
            beside.say(b"PUBLISH", b"news", b"one")
            until(lambda: "cmdstat_publish" in asking.info("commandstats"), "the message")
            assert asking.ping(), "it waits"
            writer.go_on()
        assert beside.read_to_end() == b""
        here.publish("news", "two")
        for pubsub in heard.values():
            found = [pubsub.get_message(timeout=PATIENCE_S) for _ in range(2)]
            assert [message["data"] for message in found if message] == [b"one", b"two"]
    fellow.stop()


def test_nobody_waits_for_a_message_longer_than_the_writer_s_patience_though_there_is_a_replica(
    tmp_path: Path, master: SocketServer, replica: SocketServer
) -> None:
    fellow = start_ours(tmp_path / "store", "--writer-patience", "1")
    follow(replica, master)
    with master.client() as here, replica.client() as there, fellow.client() as beside:
        heard = {server: server.pubsub() for server in (here, there)}
        for pubsub in heard.values():
            pubsub.subscribe("news")
            assert pubsub.get_message(timeout=PATIENCE_S)
        with StoppedWriter(tmp_path / "store") as writer:
            for said in (b"one", b"two"):
                assert beside.publish("news", said) == 1
                message = heard[here].get_message(timeout=PATIENCE_S)
                assert message is not None and message["data"] == said
            writer.go_on()
        found = [heard[there].get_message(timeout=PATIENCE_S) for _ in range(2)]
        assert [message["data"] for message in found if message] == [b"one", b"two"]
    fellow.stop()


def test_a_program_s_writes_reach_a_replica_that_comes_back_to_another_server(
    tmp_path: Path, master: SocketServer, replica: SocketServer
) -> None:
    follow(replica, master)
    fellow = start_ours(tmp_path / "store")
    try:
        master._process.kill()
        with rlite_pubsub.Redis(tmp_path / "store") as program:
            program.rpush("l", *range(100))
        with replica.client() as there, fellow.client() as here:
            there.execute_command("REPLICAOF", "127.0.0.1", fellow.port)
            assert_same(fellow, replica)
            assert here.info("stats")["sync_partial_ok"] == 1
    finally:
        fellow.stop()


def test_a_replica_takes_over_and_has_replicas_of_its_own(
    tmp_path: Path, master: SocketServer, replica: SocketServer
) -> None:
    behind = start_redis(tmp_path / "behind")
    try:
        with master.client() as here, replica.client() as there, behind.client() as last:
            fill(here)
            follow(replica, master)
            assert last.execute_command("REPLICAOF", "127.0.0.1", replica.port)
            here.incr("a")
            until(lambda: has_caught_up(there, last), "the replica's replica")
            assert_same(master, replica)
            until(lambda: digest(here) == digest(last), "the same digest")
            assert there.execute_command("REPLICAOF", "NO", "ONE")
            assert there.incr("a") == 2
            until(lambda: last.get("a") == b"2", "it goes on without us")
    finally:
        behind.stop()


def test_a_replica_of_redis_has_replicas(tmp_path: Path, master: SocketServer, replica: SocketServer) -> None:
    """Redis -> us -> Redis."""
    first = start_redis(tmp_path / "first")
    try:
        with first.client() as origin, master.client() as here:
            fill(origin)
            here.execute_command("REPLICAOF", "127.0.0.1", first.port)
            until(lambda: here.info("replication")["master_link_status"] == "up", "the first link")
            follow(replica, master)
            for number in range(200):
                origin.incr("a", number)
                origin.xadd("x", {"a": number})
                origin.spop("set1")
                origin.set("e", number, px=50)
            until(lambda: origin.get("e") is None, "it has expired")
            until(lambda: digest(origin) == digest(here), "the same digest here")
            assert_same(master, replica)
    finally:
        first.stop()


def test_wait_counts_those_that_have_acknowledged(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as here:
        assert here.wait(0, 100) == 0
        assert here.wait(1, 100) == 0
        follow(replica, master)
        for number in range(20):
            here.set("a", number)
            assert here.wait(1, 20_000) == 1
            with replica.client() as there:
                assert there.get("a") == b"%d" % number
        here.set("a", "more")
        assert here.wait(2, 100) == 1
        with here.pipeline() as pipe:
            pipe.execute_command("WAIT", 1, 0)
            pipe.set("a", "last")
            pipe.execute_command("WAIT", 1, 0)
            assert pipe.execute() == [1, True, 1], "it asks about what came before the transaction"
        assert here.wait(1, 20_000) == 1
        with replica.client() as there:
            there.execute_command("CLIENT", "PAUSE", 60_000)  # it executes nothing that its master says
        with here.pipeline(transaction=False) as pipe:  # in one turn: the SET has no place in the stream yet
            for words in (("SET", "a", 1), ("MULTI",), ("WAIT", 1, 0), ("SET", "a", 2), ("EXEC",)):
                pipe.execute_command(*words)
            assert pipe.execute()[-1][0] == 0
        here.set("a", "later")
        assert here.wait(1, 300) == 0
        with here.pipeline() as pipe:
            pipe.execute_command("WAIT", 1, 0)
            assert pipe.execute() == [0]


def test_writes_are_refused_with_too_few_replicas(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as here:
        here.config_set("min-replicas-to-write", 1)
        for words in (["SET", "a", 1], ["EVAL", "return redis.call('SET', 'a', 1)", 0]):
            with pytest.raises(redis.exceptions.ResponseError, match="Not enough good replicas"):
                here.execute_command(*words)
        assert here.get("a") is None
        follow(replica, master)
        until(lambda: here.info("replication")["min_slaves_good_slaves"] == 1, "it is heard")
        assert here.set("a", 1)


def test_a_replica_that_does_not_read_is_cut_off_and_nobody_waits_for_it(tmp_path: Path) -> None:
    master = start_ours(tmp_path / "store", "--client-output-buffer-limit", "replica 2mb 0 0")
    try:
        with master.client() as here, master.wire() as wire:
            wire.send(request(b"REPLCONF", b"capa", b"psync2") + request(b"PSYNC", b"?", b"-1"))
            until(lambda: here.info("replication").get("slave0", {}).get("state") == "online", "it is sent the stream")
            for number in range(400):
                here.set("a", bytes([number % 256]) * 100_000)
            until(lambda: here.info("replication")["connected_slaves"] == 0, "it is cut off")
            stream = here.info("replication")
            assert stream["repl_backlog_histlen"] < 8 << 20, "what was kept for it is bounded"
    finally:
        master.stop()


def test_role_and_info_say_what_redis_says(tmp_path: Path, master: SocketServer, replica: SocketServer) -> None:
    """Our replica, and one of a redis-server's."""
    theirs, other = start_redis(tmp_path / "theirs", "--repl-ping-replica-period", "1"), start_redis(tmp_path / "other")
    try:
        follow(replica, master)
        follow(other, theirs)
        with master.client() as here, theirs.client() as there:
            for client in (here, there):
                client.set("a", 1)
                assert client.wait(1, 20_000) == 1
            mine, yours = (client.execute_command("ROLE") for client in (here, there))
            assert [type(each) for each in mine] == [type(each) for each in yours]
            assert mine[0] == b"master"
            for said, attached in ((mine, replica), (yours, other)):
                assert [said[2][0][0], said[2][0][1]] == [b"127.0.0.1", b"%d" % attached.port]
            infos = [client.info("replication") for client in (here, there)]
            assert list(infos[0]) == list(infos[1])
            assert infos[0]["slave0"].keys() == infos[1]["slave0"].keys()
            for name in ("role", "connected_slaves", "master_replid2", "second_repl_offset", "repl_backlog_active"):
                assert infos[0][name] == infos[1][name], name
            (mine_listed,), (yours_listed,) = (client.client_list(_type="replica") for client in (here, there))
            assert mine_listed["flags"] == yours_listed["flags"] == "S"
            for client in (here, there):
                user = ["ACL", "SETUSER", "r", "on", ">p", "+psync", "+replconf", "+ping"]
                assert client.execute_command(*user)
                assert client.execute_command("ACL", "DRYRUN", "r", "PSYNC", "?", "-1") == b"OK"
                assert b"no permissions" in client.execute_command("ACL", "DRYRUN", "r", "SYNC")
    finally:
        theirs.stop()
        other.stop()


def test_redis_cli_follows_and_takes_a_file(tmp_path: Path, master: SocketServer) -> None:
    if REDIS_CLI is None:
        pytest.skip("there is no redis-cli")
    with master.client() as here:
        fill(here)
        words = [REDIS_CLI, "-p", str(master.port)]
        follower = subprocess.Popen([*words, "--replica"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        try:
            until(lambda: here.info("replication").get("slave0", {}).get("state") == "online", "it follows")
            here.set("said", "by us")
            assert follower.stdout is not None
            lines: list[bytes] = []
            while not any(b"by us" in line for line in lines):
                line = follower.stdout.readline()
                assert line, lines
                lines.append(line)
        finally:
            follower.kill()
            follower.wait()
        done = subprocess.run([*words, "--rdb", str(tmp_path / "dump.rdb")], capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "dump.rdb").read_bytes().startswith(b"REDIS0010")
