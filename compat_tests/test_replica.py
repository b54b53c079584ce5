"""A store that is a replica of redis-server: the same digest whatever happens to the link, and nobody else writes."""

from __future__ import annotations

import fcntl
import random
import resource
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import redis
from patience import until

import rlite_pubsub
from compat_tests.servers import REDIS_SERVER, SocketServer
from compat_tests.test_moving import digest, fill
from rlite_pubsub.replication.master_link import MasterAddress, MasterLink

OURS = [sys.executable, "-m", "rlite_pubsub", "serve"]
LIBRARY = "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)"
QUICK = ["--repl-diskless-sync-delay", "0"]  # else it waits for more replicas


@pytest.fixture
def master(tmp_path: Path) -> Iterator[SocketServer]:
    if REDIS_SERVER is None:
        pytest.skip("there is no redis-server")
    folder = tmp_path / "master"
    folder.mkdir()
    server = SocketServer("master", [REDIS_SERVER, "--save", "", "--repl-ping-replica-period", "1", *QUICK], folder)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def replica(master: SocketServer, tmp_path: Path) -> Iterator[SocketServer]:
    (tmp_path / "store").mkdir()
    server = SocketServer("replica", OURS, tmp_path / "store")
    try:
        yield server
    finally:
        server.stop()


def has_caught_up(master: redis.Redis, replica: redis.Redis) -> bool:
    there, here = master.info("replication"), replica.info("replication")
    return here["master_link_status"] == "up" and here["slave_repl_offset"] >= there["master_repl_offset"]


def change(client: redis.Redis, dice: random.Random, count: int) -> None:
    """Commands that replicas are told of in other words than these."""
    pipe = client.pipeline(transaction=False)
    for _ in range(count):
        number = dice.randrange(50)
        key = f"k{number}"
        match dice.randrange(14):
            case 0:
                pipe.set(f"s{key}", dice.random(), px=dice.choice([None, 100_000]))
            case 1:
                pipe.incr(f"n{key}")
            case 2:
                pipe.sadd(f"S{key}", *range(dice.randrange(1, 9)))
                pipe.spop(f"S{key}", 2)
            case 3:
                pipe.lpush(f"l{key}", dice.randrange(9), "x")
                pipe.execute_command("LMPOP", 1, f"l{key}", "RIGHT")
            case 4:
                pipe.xadd("x", {"f": number})
                pipe.xreadgroup("g", f"c{number % 3}", {"x": ">"}, count=2)
            case 5:
                pipe.zadd(f"z{key}", {str(number): dice.random()})
                pipe.zpopmin(f"z{dice.randrange(50)}")
            case 6:
                pipe.hincrbyfloat(f"h{key}", "f", dice.random())
            case 7:
                pipe.expire(f"n{key}", 100)
            case 8:
                pipe.eval("redis.call('INCR', KEYS[1]) return redis.call('SPOP', KEYS[2])", 2, f"n{key}", "Sk1")
            case 9:
                pipe.execute_command("SELECT", dice.choice([0, 0, 5]))
            case 10:
                pipe.execute_command("MULTI")
                pipe.execute_command("INCR", f"n{key}")
                pipe.execute_command("RPUSH", f"l{key}", number)
                pipe.execute_command("EXEC")
            case 11:
                pipe.delete(f"s{key}", f"h{key}")
            case 12:
                pipe.execute_command("COPY", f"l{key}", f"l{dice.randrange(50)}", "REPLACE")
            case _:
                pipe.execute_command("GETEX", f"s{key}", "PX", 50_000)
    pipe.execute(raise_on_error=False)


def test_a_replica_follows_through_cuts_and_kills(master: SocketServer, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    dice = random.Random(7)
    server = SocketServer("replica", OURS, folder)
    try:
        with master.client() as there:
            fill(there)
            there.xgroup_create("x", "g", "0", mkstream=True)
            change(there, dice, 300)
            with server.client() as here:
                assert here.execute_command("REPLICAOF", "localhost", master.port)
            for step in range(4):
                change(there, dice, 300)
                if step == 1:
                    there.client_kill_filter(_type="replica")
                if step == 2:
                    change(there, dice, 300)
                    server._process.kill()
                    change(there, dice, 300)
                    server.stop()
                    server = SocketServer("replica", OURS, folder)
                with server.client() as here:
                    until(lambda: has_caught_up(there, here), "the replica has caught up")  # noqa: B023
                    until(lambda: digest(there) == digest(here), "the same digest")  # noqa: B023
            assert there.info("stats")["sync_full"] == 1, "everything else was resumed"
    finally:
        server.stop()


def test_only_the_master_writes_until_the_replica_is_promoted(
    master: SocketServer, replica: SocketServer, tmp_path: Path
) -> None:
    with master.client() as there, replica.client() as here:
        there.set("key", "there")
        there.function_load(LIBRARY)
        here.set("mine", 1)
        assert here.execute_command("REPLICAOF", "localhost", master.port)
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        assert (here.get("key"), here.get("mine")) == (b"there", None)
        writes = [
            lambda: here.set("a", 1),
            lambda: here.eval("return redis.call('SET', 'a', 1)", 0),
            lambda: here.fcall("f", 1, "a"),
            lambda: here.pipeline().set("a", 1).execute(),
        ]
        with rlite_pubsub.Redis(tmp_path / "store") as program:
            for write in [*writes, lambda: program.set("a", 1)]:
                with pytest.raises(redis.exceptions.ResponseError, match="read only replica"):
                    write()
        assert [each for each in here.role()] == [b"slave", b"localhost", master.port, b"connected", here.role()[4]]
        with closing(here.pubsub()) as pubsub:
            pubsub.subscribe("news")
            pubsub.get_message(timeout=5)
            until(lambda: there.publish("news", "hello") == 0, "nobody is there")
            message = pubsub.get_message(timeout=5)
            assert message is not None and message["data"] == b"hello"

        assert here.execute_command("REPLICAOF", "NO", "ONE")
        assert here.set("a", 1) and here.role()[0] == b"master"
        there.set("key", "changed")
        assert here.get("key") == b"there"
        assert here.fcall("f", 1, "a") == 2


def test_a_key_goes_when_the_master_says_so_and_is_not_shown_when_its_time_is_over(
    master: SocketServer, replica: SocketServer
) -> None:
    with master.client() as there, replica.client() as here:
        assert here.execute_command("REPLICAOF", "localhost", master.port)
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        there.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        there.set("over", 1, px=50)
        there.set("kept", 5, px=50)
        until(lambda: has_caught_up(there, here) and here.get("over") is None, "its time is over")
        assert here.dbsize() == 2, "but the master has not said so"
        until(lambda: there.get("over") is None and here.dbsize() == 1, "now it has")
        there.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        until(lambda: here.dbsize() == 0, "and here, too")


def test_a_writable_replica_removes_what_its_own_clients_let_expire(
    master: SocketServer, replica: SocketServer
) -> None:
    with master.client() as there, replica.client() as here:
        there.set("loaded", 1, px=100_000)
        assert here.execute_command("REPLICAOF", "localhost", master.port)
        here.config_set("replica-read-only", "no")
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        there.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")
        for key in ("written", "read", "told"):
            there.set(key, 5, px=50)
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        until(lambda: not here.exists("written", "read", "told"), "their time is over")
        here.set("mine", 1, px=50)
        here.set("later", 1, ex=1000)
        assert here.info("stats")["slave_expires_tracked_keys"] >= 1
        until(lambda: here.info("stats")["slave_expires_tracked_keys"] == 1, "one of its own is gone")
        assert here.dbsize() == 5, "but none of the master's"
        assert here.incr("written") == 1
        assert here.ttl("written") == -1
        assert (here.get("read"), here.dbsize()) == (None, 5)
        there.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "1")
        until(lambda: here.dbsize() == 2, "the master has said so")
        assert here.execute_command("REPLICAOF", "NO", "ONE")
        assert here.info("stats")["slave_expires_tracked_keys"] == 0


def test_what_a_writable_replica_can_not_do_for_its_master_is_counted_and_logged(
    master: SocketServer, replica: SocketServer, tmp_path: Path
) -> None:
    with master.client() as there, replica.client() as here:
        assert here.execute_command("REPLICAOF", "localhost", master.port)
        here.config_set("replica-read-only", "no")
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        here.set("number", "foo")
        there.incrby("number", 1)
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        assert here.get("number") == b"foo"
        assert here.info("stats")["unexpected_error_replies"] == 1
    assert "after processing the command 'incrby'" in (tmp_path / "store" / "server.log").read_text()


def test_a_password_that_comes_after_the_master_is_taken(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as there, replica.client() as here:
        there.config_set("requirepass", b"abc\0def")
        assert here.execute_command("REPLICAOF", "127.0.0.1", master.port)
        here.config_set("masterauth", "abc")
        until(lambda: here.role()[3] in (b"connect", b"handshake"), "it is refused")
        here.config_set("masterauth", b"abc\0def")
        until(lambda: here.info("replication")["master_link_status"] == "up", "it is let in")
        there.config_set("requirepass", "")


def test_a_replica_connects_from_the_address_that_it_is_told(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as there, replica.client() as here:
        there.config_set("protected-mode", "no")  # it knows 127.0.0.1 only
        here.config_set("bind-source-addr", "127.0.0.2")
        assert here.execute_command("REPLICAOF", "127.0.0.1", master.port)
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        assert there.info("replication")["slave0"]["ip"] == "127.0.0.2"


def master_line(replica: redis.Redis) -> dict[str, str]:
    """The line of CLIENT LIST about the link to the master; empty: there is none."""
    lines = replica.client_list("master")
    assert len(lines) <= 1
    return lines[0] if lines else {}


def test_the_link_to_the_master_is_a_client_that_can_be_killed(
    master: SocketServer, replica: SocketServer, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    assert REDIS_SERVER is not None
    theirs = SocketServer("theirs", [REDIS_SERVER, "--save", "", *QUICK], folder)
    told: list[list[object]] = []
    try:
        for follower in (theirs, replica):
            with master.client() as there, follower.client() as here:
                replies: list[object] = []
                assert here.client_list("master") == []
                assert here.execute_command("REPLICAOF", "127.0.0.1", master.port)
                there.incr("n")
                until(lambda: has_caught_up(there, here), "the replica has caught up")  # noqa: B023
                before = there.info("stats")["sync_partial_ok"]
                for number, order in enumerate(
                    (
                        ("TYPE", "master"),
                        (f"127.0.0.1:{master.port}",),
                        ("ADDR", f"127.0.0.1:{master.port}"),
                        ("LADDR",),
                        ("ID",),
                    )
                ):
                    line = master_line(here)
                    replies.append([line[name] for name in ("flags", "db", "user", "redir", "resp", "addr", "events")])
                    assert line in here.client_list() and line == here.client_list(client_id=[line["id"]])[0] | line
                    assert here.info("clients")["connected_clients"] == 2
                    last = {"LADDR": [line["laddr"]], "ID": [line["id"]]}.get(order[0], [])
                    replies.append(here.execute_command("CLIENT", "KILL", *order, *last))
                    there.incr("n")
                    until(lambda: has_caught_up(there, here) and master_line(here), "it is back")  # noqa: B023
                    assert master_line(here)["id"] == line["id"] and master_line(here)["laddr"] != line["laddr"]
                    assert there.info("stats")["sync_partial_ok"] == before + number + 1, "it goes on where it was"
                for others in (("TYPE", "normal"), ("USER", "default"), ("TYPE", "pubsub")):
                    replies.append(here.execute_command("CLIENT", "KILL", *others))
                    replies.append(here.execute_command("CLIENT", "ID") > 0)
                here.acl_setuser("default", enabled=True, nopass=True, commands=["-@write", "+acl"])
                there.incr("n")
                until(lambda: has_caught_up(there, here), "the master's writes are nobody's")  # noqa: B023
                replies.append(here.info("replication")["master_link_status"])
                here.acl_setuser("default", enabled=True, nopass=True, categories=["+@all"])
                assert here.execute_command("REPLICAOF", "NO", "ONE")
                replies += [here.client_list("master"), here.execute_command("CLIENT", "KILL", "TYPE", "master")]
                replies.append(here.info("clients")["connected_clients"])
                told.append(replies)
        assert told[0] == told[1]
    finally:
        theirs.stop()


def hear_in_a_pause(master: SocketServer, there: redis.Redis, here: redis.Redis) -> int:
    """Let the replica follow, and hear an INCR while its clients are paused; where that ends in the history."""
    assert here.execute_command("REPLICAOF", "127.0.0.1", master.port)
    there.set("n", 1)
    until(lambda: has_caught_up(there, here), "the replica has caught up")
    here.client_pause(100_000, all=False)
    there.incr("n")
    ends = int(there.info("replication")["master_repl_offset"])
    until(lambda: here.info("replication")["slave_read_repl_offset"] >= ends, "the replica has heard it")
    return ends


def test_a_killed_link_comes_back_behind_the_transaction_and_what_it_said_is_said_again(
    master: SocketServer, replica: SocketServer
) -> None:
    with master.client() as there, replica.client() as here:
        hear_in_a_pause(master, there, here)
        known = master_line(here)["laddr"]
        assert here.execute_command("CLIENT", "KILL", "TYPE", "master") == 1
        until(lambda: master_line(here).get("laddr", known) != known, "it is back, though clients are paused")
        assert here.get("n") == b"1"
        here.client_unpause()
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        assert here.get("n") == b"2"
        before = there.info("stats")["sync_partial_ok"]
        pipe = here.pipeline()
        pipe.execute_command("CLIENT", "KILL", "TYPE", "master")
        pipe.execute_command("DEBUG", "SLEEP", "1.5")
        until(lambda: there.info("replication")["connected_slaves"] == 1, "it is there")
        with ThreadPoolExecutor() as pool:
            run = pool.submit(pipe.execute)
            until(lambda: there.info("replication")["connected_slaves"] == 0, "it is cut at once")
            while not run.done():
                assert there.info("stats")["sync_partial_ok"] == before or run.done()
        assert run.result()[0] == 1
        until(lambda: there.info("stats")["sync_partial_ok"] == before + 1, "it is back")


def test_another_server_of_the_store_takes_the_link(
    master: SocketServer, replica: SocketServer, tmp_path: Path
) -> None:
    other = SocketServer("other", OURS, tmp_path / "store")
    try:
        with master.client() as there, replica.client() as here, other.client() as beside:
            assert here.execute_command("REPLICAOF", "localhost", master.port)
            there.set("a", 1)
            until(lambda: has_caught_up(there, here), "the replica has caught up")
            assert beside.get("a") == b"1"
            with pytest.raises(redis.exceptions.ReadOnlyError):
                beside.set("a", 2)
            replica._process.kill()
            there.set("a", 2)
            until(lambda: has_caught_up(there, beside), "the other one has the link")
            assert beside.get("a") == b"2"
    finally:
        other.stop()


def test_what_the_master_says_in_a_pause_is_executed_behind_it(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as there, replica.client() as here:
        ends = hear_in_a_pause(master, there, here)
        assert here.info("replication")["slave_repl_offset"] < ends, "and not executed it"
        assert here.get("n") == b"1", "its clients' writes are paused, and so are the master's"
        here.client_unpause()
        until(lambda: has_caught_up(there, here), "the replica has caught up")
        assert here.get("n") == b"2"
        assert there.info("stats")["sync_partial_ok"] == 0, "and the link stands"


def test_a_full_replica_passes_nothing_over(master: SocketServer, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    small = SocketServer("replica", [*OURS, "--store-quota", "1mb"], folder)
    with master.client() as there:
        try:
            with small.client() as here:
                assert here.execute_command("REPLICAOF", "localhost", master.port)
                there.set("first", 1)
                until(lambda: has_caught_up(there, here), "the replica has caught up")
                for number in range(50):
                    there.set(f"k{number}", b"x" * 100_000)
                until(lambda: here.info("replication")["master_link_status"] == "down", "it can go on no more")
        finally:
            small.stop()
        large = SocketServer("replica", OURS, folder)
        try:
            with large.client() as here:
                until(lambda: has_caught_up(there, here), "the replica has caught up")
                assert digest(there) == digest(here)
        finally:
            large.stop()


def test_a_replica_evicts_nothing(master: SocketServer, replica: SocketServer) -> None:
    with master.client() as there, replica.client() as here:
        here.config_set("maxmemory-policy", "allkeys-lru")
        here.config_set("maxmemory", "1mb")
        assert here.execute_command("REPLICAOF", "localhost", master.port)
        there.mset({f"k{number}": b"x" * 100_000 for number in range(30)})
        there.set("last", 1)
        until(lambda: has_caught_up(there, here) and here.get("last"), "the replica has caught up")
        assert digest(there) == digest(here)


def test_a_store_that_was_nobodys_replica_meanwhile_begins_again(master: SocketServer, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    of_master = [*OURS, "--replicaof", "localhost", str(master.port)]
    with master.client() as there:
        there.set("key", 1)
        for words in (of_master, [*OURS, "--replicaof", "no", "one"], of_master):
            server = SocketServer("replica", words, folder)
            try:
                with server.client() as here:
                    if words is of_master:
                        until(lambda: has_caught_up(there, here), "the replica has caught up")  # noqa: B023
                        assert digest(there) == digest(here)
                    else:
                        here.set("mine", 1)
            finally:
                server.stop()


def test_a_link_with_a_high_descriptor_is_asked_whether_there_is_more() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        link = MasterLink(MasterAddress("127.0.0.1", listener.getsockname()[1]), 10.0)
        peer, _ = listener.accept()
        with closing(link), closing(peer):
            low = link._socket
            link._socket = socket.socket(fileno=fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 2000))
            low.close()
            assert not link.has_more
            peer.sendall(b"+")
            until(lambda: link.has_more, "more")


def test_who_is_blocked_takes_nothing_from_a_replica(
    master: SocketServer, replica: SocketServer, tmp_path: Path
) -> None:
    other = SocketServer("other", OURS, tmp_path / "store")
    try:
        with master.client() as there, replica.client() as here, replica.wire() as wire, other.wire() as beside:
            for each in (wire, beside):
                each.say(b"BLPOP", b"list", b"0")
            until(lambda: here.info("clients")["blocked_clients"] == 1, "it is blocked")
            assert here.execute_command("REPLICAOF", "localhost", master.port)
            there.rpush("list", "item")
            until(lambda: has_caught_up(there, here), "the replica has caught up")
            assert here.lrange("list", 0, -1) == [b"item"]
            for each in (wire, beside):
                assert each.read_to_end().startswith(b"-UNBLOCKED force unblock"), "and they are told, and closed"
    finally:
        other.stop()
