"""What all processes of a store have in common: two servers as processes of their own, and a program."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import redis
from other_process import OtherProcess
from patience import PATIENCE_S, until
from peer import Peer
from redis.exceptions import ConnectionError, NoPermissionError
from server_process import Serve, ServerProcess
from stopped_writer import StoppedWriter

import rlite_pubsub
from rlite_pubsub.engine.eviction.memory_limit import MemoryLimit
from rlite_pubsub.storage.commons import changed_keys
from rlite_pubsub.storage.store import Store


class Three(NamedTuple):
    """Clients of two servers, and of a program without one, on one store."""

    first: redis.Redis
    second: redis.Redis
    program: rlite_pubsub.Redis


def client_of(server: ServerProcess, **options: object) -> redis.Redis:
    return redis.Redis(port=server.port, **options)  # type: ignore[arg-type]


@pytest.fixture
def three(serve: Serve, folder: Path, tmp_path: Path) -> Iterator[Three]:
    first, second = serve(), serve(folder=tmp_path / "second", store_folder=folder)
    with client_of(first) as one, client_of(second) as other, rlite_pubsub.Redis(folder) as program:
        yield Three(one, other, program)


def listening(client: redis.Redis) -> redis.client.PubSub:
    pubsub = client.pubsub()
    pubsub.psubscribe("__keyevent@0__:*")
    assert pubsub.get_message(timeout=PATIENCE_S) is not None
    return pubsub


def heard(pubsub: redis.client.PubSub, count: int) -> list[tuple[bytes, bytes]]:
    """(event, key) of so many."""
    found: list[tuple[bytes, bytes]] = []
    while len(found) < count:
        message = pubsub.get_message(timeout=PATIENCE_S)
        assert message is not None, f"only {found} came"
        if message["type"] == "pmessage":
            found.append((message["channel"].partition(b":")[2], message["data"]))
    return found


# -- settings


def test_a_setting_of_the_store_holds_everywhere_once_it_is_answered(three: Three) -> None:
    for round, (setter, value) in enumerate(zip(three * 20, ["KEA", "Kx", "", "AKE"] * 15, strict=True)):
        setter.config_set("notify-keyspace-events", value)
        for client in three:
            shown = client.config_get("notify-keyspace-events")["notify-keyspace-events"]
            assert set(shown) == set(value), f"round {round}"
    assert "notify-keyspace-events" in three.first.info("server")["shared_settings"].split(" ")
    assert "retain" in three.program.info("server")["shared_settings"].split(" ")


def test_a_setting_of_one_process_stays_its_own(three: Three) -> None:
    three.first.config_set("maxclients", 77)
    assert three.second.config_get("maxclients") != {"maxclients": "77"}


def test_what_is_said_at_a_start_holds_for_all_and_what_is_not_said_is_taken_from_the_store(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    with client_of(serve("--notify-keyspace-events", "KEA")) as first:
        with client_of(serve(folder=tmp_path / "2", store_folder=folder)) as second:
            assert second.config_get("notify-keyspace-events") == first.config_get("notify-keyspace-events")
        third = serve("--notify-keyspace-events", "Kx", folder=tmp_path / "3", store_folder=folder)
        with client_of(third) as said:
            assert said.config_get("notify-keyspace-events") == {"notify-keyspace-events": "xK"}
            assert first.config_get("notify-keyspace-events") == {"notify-keyspace-events": "xK"}


# -- events of keys


def test_each_event_reaches_subscribers_at_all_processes_once_whoever_changes_the_key(three: Three) -> None:
    three.second.config_set("notify-keyspace-events", "KEA")
    pubsubs = [listening(client) for client in three]
    for number, client in enumerate(three):
        client.set(f"key:{number}", "value")
        client.delete(f"key:{number}")
    expected = [(event, b"key:%d" % number) for number in range(3) for event in (b"set", b"del")]
    for pubsub in pubsubs:
        found = heard(pubsub, 6)
        assert sorted(found) == sorted(expected)
        assert pubsub.get_message(timeout=0.1) is None


def test_each_key_that_expires_is_announced_once_to_all(three: Three) -> None:
    three.first.config_set("notify-keyspace-events", "Ex")
    pubsubs = [listening(client) for client in three]
    for number in range(60):
        three[number % 3].set(f"key:{number}", "value", px=1 + number * 20)
    for pubsub in pubsubs:
        found = heard(pubsub, 60)
        assert sorted(found) == sorted((b"expired", b"key:%d" % number) for number in range(60))
        assert pubsub.get_message(timeout=0.1) is None


def test_a_program_that_starts_after_the_setting_was_made_announces_what_it_does(three: Three, folder: Path) -> None:
    three.first.config_set("notify-keyspace-events", "KEA")
    pubsub = listening(three.second)
    with OtherProcess(folder, "rlite_pubsub.Redis(folder).set('mine', 1, px=1)\nsay('done')") as program:
        assert program.hear() == "done"
        assert program.end() == 0
    events = heard(pubsub, 3)
    events.remove((b"expired", b"mine"))  # a server may find that before the program has announced the rest
    assert events == [(b"set", b"mine"), (b"expire", b"mine")]


# -- users


def test_a_user_made_at_one_process_logs_in_at_all_and_is_gone_at_all_when_deleted(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    first, second = serve(), serve(folder=tmp_path / "second", store_folder=folder)
    with client_of(first) as admin, rlite_pubsub.Redis(folder) as program:
        admin.acl_setuser("alice", enabled=True, passwords=["+secret"], keys=["*"], commands=["+@all"])
        with client_of(second, username="alice", password="secret") as alice:
            assert alice.set("key", "value")
            assert admin.acl_list() == program.acl_list() == alice.acl_list()

            program.acl_setuser("alice", commands=["-set"])
            with pytest.raises(NoPermissionError):
                alice.set("key", "value")

            connection = alice.connection_pool.get_connection()
            assert admin.acl_deluser("alice") == 1
            with pytest.raises(ConnectionError):
                connection.read_response(timeout=PATIENCE_S)
            with pytest.raises((redis.AuthenticationError, ConnectionError)):
                alice.ping()
        assert [user for user in admin.acl_users() if user != "default"] == []
        assert program.acl_users() == admin.acl_users()


def test_a_subscriber_whose_user_loses_a_channel_elsewhere_is_closed(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    first, second = serve(), serve(folder=tmp_path / "second", store_folder=folder)
    with client_of(first) as admin, second.connect() as subscriber:
        admin.execute_command("ACL", "SETUSER", "bob", "on", "nopass", "+@all", "&news")
        assert subscriber.do("AUTH", "bob", "x") == b"OK"
        assert subscriber.do("SUBSCRIBE", "news")[2] == 1
        admin.execute_command("ACL", "SETUSER", "bob", "resetchannels", "&other")
        assert subscriber.is_closed()


def test_a_password_of_the_default_user_is_asked_for_at_all_servers_and_programs_need_none(three: Three) -> None:
    three.first.config_set("requirepass", "secret")
    until(lambda: refuses(three.second))
    assert three.program.set("key", "value")
    three.program.execute_command("ACL", "SETUSER", "default", "nopass")
    assert three.first.ping() and three.second.ping()


def refuses(client: redis.Redis) -> bool:
    client.connection_pool.disconnect()
    try:
        client.ping()
    except redis.AuthenticationError:
        return True
    return False


def test_rules_of_the_default_user_hold_for_a_program_that_only_publishes(three: Three, folder: Path) -> None:
    assert three.program.publish("secret", "x") == 0
    three.first.execute_command("ACL", "SETUSER", "default", "resetchannels", "&open")
    with pytest.raises(NoPermissionError):
        three.program.publish("secret", "x")
    source = """
    try:
        rlite_pubsub.Redis(folder).publish("secret", "x")
    except Exception as error:
        say(type(error).__name__)
    """
    with OtherProcess(folder, source) as program:
        assert program.hear() == "NoPermissionError"


def test_users_of_a_configuration_win_over_the_stores_and_others_stay(
    serve: Serve, folder: Path, tmp_path: Path
) -> None:
    with client_of(serve()) as first:
        first.execute_command("ACL", "SETUSER", "alice", "on", "nopass", "+get")
        first.execute_command("ACL", "SETUSER", "bob", "on", "nopass", "+get")
        config = tmp_path / "second.conf"
        config.write_text("user alice on nopass +set\n")
        with client_of(serve(str(config), folder=tmp_path / "2", store_folder=folder)) as second:
            assert first.acl_list() == second.acl_list()
            assert "+set" in next(line for line in first.acl_list() if line.startswith("user alice"))
            assert "bob" in second.acl_users()
        users = tmp_path / "users.acl"
        users.write_text("user carol on nopass +get\n")
        with client_of(serve("--aclfile", str(users), folder=tmp_path / "3", store_folder=folder)) as third:
            assert sorted(first.acl_users()) == sorted(third.acl_users()) == ["carol", "default"]


@pytest.fixture
def users(tmp_path: Path) -> str:
    """A configuration file with a user."""
    config = tmp_path / "users.conf"
    config.write_text("user alice on nopass +get\n")
    return str(config)


def test_users_are_written_at_the_start_behind_what_is_not_on_the_disk_yet(
    serve: Serve, folder: Path, users: str
) -> None:
    serve().end()  # so that there is nothing else to write
    with Store.open(folder) as store:
        store.data.write(lambda txn: txn.put(b"\xff", b""))  # of no room; nobody syncs it here
        with client_of(serve(users)) as client:
            assert "alice" in client.acl_users()


def test_a_start_has_patience_with_a_writer_before_it_says_that_users_cannot_be_written(
    serve: Serve, folder: Path, users: str
) -> None:
    serve().end()
    with StoppedWriter(folder):
        server = serve(users, "--writer-patience", "1", wait=False)
        assert server.exit_code() != 0
        said = server.output() + server.log()
    seconds = re.search(r"Can't write the users .*\bhas been writing to .* for ([0-9.]+) seconds", said)
    assert seconds is not None and float(seconds[1]) >= 1, said


# -- CLIENT TRACKING


def invalidated(peer: Peer, count: int) -> list[bytes]:
    """The keys of so many invalidations."""
    found: list[bytes] = []
    while len(found) < count:
        message = peer.reply()
        assert message[0] == b"invalidate", message
        assert message[1] is not None, f"all keys, behind {found}"
        found += message[1]
    return found


@pytest.fixture
def tracker(serve: Serve, folder: Path, tmp_path: Path) -> Iterator[tuple[Peer, redis.Redis, rlite_pubsub.Redis]]:
    """A RESP3 connection to one server, a client of another, and a program."""
    first, second = serve(), serve(folder=tmp_path / "second", store_folder=folder)
    with first.connect(protocol=3) as peer, client_of(second) as other, rlite_pubsub.Redis(folder) as program:
        yield peer, other, program


Tracker = tuple[Peer, redis.Redis, rlite_pubsub.Redis]


def test_a_key_that_was_read_is_invalidated_once_whoever_changes_it(tracker: Tracker) -> None:
    peer, *others = tracker
    assert peer.do("CLIENT", "TRACKING", "ON") == b"OK"
    for other in others:
        for number in range(20):
            peer.do("GET", f"key:{number}")
        for number in range(20):
            other.set("not:read", number)
            other.set(f"key:{number}", number)
            other.set(f"key:{number}", number)
        assert sorted(invalidated(peer, 20)) == sorted(b"key:%d" % number for number in range(20))
    assert peer.do("PING") == b"PONG"  # and no more


def test_a_key_that_expires_or_is_removed_elsewhere_is_invalidated(tracker: Tracker) -> None:
    peer, other, program = tracker
    other.set("short", 1, px=300)
    program.rpush("list", "a", "b")
    program.xadd("topic", {"a": "b"})
    peer.do("CLIENT", "TRACKING", "ON")
    assert peer.do("LRANGE", "list", 0, -1) == [b"a", b"b"]
    assert len(peer.do("XRANGE", "topic", "-", "+")) == 1
    assert peer.do("GET", "short") in (b"1", None)
    program.lpop("list")
    other.xadd("topic", {"c": "d"})
    assert set(invalidated(peer, 3)) == {b"short", b"list", b"topic"}
    assert peer.do("GET", "other") is None
    other.flushall()
    assert peer.reply() == [b"invalidate", None]


def test_who_broadcasts_is_told_of_its_prefixes_and_nothing_else(tracker: Tracker) -> None:
    peer, other, program = tracker
    assert peer.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "a:", "PREFIX", "b:", "NOLOOP") == b"OK"
    assert peer.do("SET", "a:own", 1) == b"OK"
    for number, client in enumerate((other, program) * 20):
        client.set(f"a:{number}", 1)
        client.set(f"c:{number}", 1)
    other.set("b:last", 1)
    expected = {b"a:%d" % number for number in range(40)} | {b"b:last"}
    assert set(invalidated(peer, 41)) == expected


def test_what_was_read_after_the_change_is_not_invalidated_by_it(tracker: Tracker) -> None:
    peer, other, _ = tracker
    peer.do("CLIENT", "TRACKING", "ON")
    for number in range(200):
        other.set("key", number)
        assert peer.do("GET", "key") == b"%d" % number, "an invalidation came before what it is for was changed"
        other.set("key", "x")
        assert invalidated(peer, 1) == [b"key"]


def test_a_program_tracks_keys_that_servers_change(tracker: Tracker, folder: Path) -> None:
    _, other, _ = tracker
    source = """
    client = rlite_pubsub.Redis(folder, protocol=3)
    connection = client.connection_pool.get_connection()
    for words in (("CLIENT", "TRACKING", "ON"), ("GET", "key")):
        connection.send_command(*words)
        connection.read_response()
    say("read")
    say(connection._sock.receive(PATIENCE_S).split())
    """
    with OtherProcess(folder, source) as program:
        assert program.hear() == "read"
        other.set("key", "value")
        assert program.hear() == str([b">2", b"$10", b"invalidate", b"*1", b"$3", b"key"])


def test_a_tracker_that_was_stopped_for_long_is_told_that_any_key_may_have_changed(
    serve: Serve, folder: Path
) -> None:
    stopped = serve()
    with stopped.connect(protocol=3) as reader, stopped.connect(protocol=3) as broadcaster:
        reader.do("CLIENT", "TRACKING", "ON")
        broadcaster.do("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "none:")
        with rlite_pubsub.Redis(folder) as program:
            for name in ("changed", "kept"):
                program.set(name, 1)
                assert reader.do("GET", name) == b"1"
            stopped.process.send_signal(signal.SIGSTOP)
            try:
                program.set("changed", 2)
                for number in range(8000):
                    program.set(f"{'x' * 200}:{number % 100}", 1)
                with Store.open(folder) as store:
                    rows = store.data.read(lambda txn: changed_keys.since(txn, 0)).rows
                assert sum(len(name) for row in rows for name in row.names) < changed_keys.MAX_BYTES
            finally:
                stopped.process.send_signal(signal.SIGCONT)
            assert invalidated(reader, 1) == [b"changed"]
            assert broadcaster.reply() == [b"invalidate", None]
            assert reader.do("PING") == b"PONG"


# -- what is kept at most


def test_the_limit_of_what_is_kept_is_the_store_s_and_whoever_writes_keeps_to_it(three: Three) -> None:
    used = int(three.first.info("store")["data_live_bytes"])
    three.second.config_set("maxmemory", used + 1_000_000)
    three.second.config_set("maxmemory-policy", "allkeys-lru")
    for number in range(1500):
        three[number % 3].set(f"key:{number}", "x" * 2000)
    live = int(three.first.info("store")["data_live_bytes"])
    assert live < used + 1_000_000 + 200_000

    def evicted() -> int:
        return sum(int(client.info("stats")["evicted_keys"]) for client in three)

    until(lambda: evicted() == 1500 - three.first.dbsize(), "all of them agree, while the background still evicts")
    three.first.config_set("maxmemory-policy", "noeviction")
    three.first.config_set("maxmemory", used)
    for client in three:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("key:more", "x")


EVICTS = """
import sys
client = rlite_pubsub.Redis(folder)
client.config_set("writer-patience", 1)
say("ready")
for key in sys.stdin:
    try:
        say(client.delete(key.strip()))
    except Exception as refusal:
        say(refusal)
"""


@pytest.mark.sources("plays another process between two calls within a compiled class")
def test_nobody_is_refused_because_another_process_evicts_the_very_key_that_it_has_picked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pick = MemoryLimit._next
    asked: list[bytes] = []
    with rlite_pubsub.Redis(folder) as client, OtherProcess(folder, EVICTS) as other:
        assert other.hear() == "ready"

        def picked(limit: MemoryLimit, wanted: int) -> list[tuple[int, bytes]]:
            keys = pick(limit, wanted)
            if keys and not asked:
                asked.append(keys[0][1])
                other.tell(keys[0][1].decode())
                other.hear()
            return keys

        monkeypatch.setattr(MemoryLimit, "_next", picked)
        used = int(client.info("store")["data_live_bytes"])
        client.config_set("maxmemory", used + 200_000)
        client.config_set("maxmemory-policy", "allkeys-random")
        for number in range(200):
            client.set(f"key:{number}", "x" * 2000)
        assert asked
