"""`maxmemory`: who goes at the limit, who is refused, and what is known of how keys are used."""

from __future__ import annotations

import random

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.engine.dispatch import execute
from rlite_pubsub.engine.eviction.usage import Often
from rlite_pubsub.storage.room import data_bytes

VALUE = "x" * 2000
ROOM = 400_000
LIBRARY = "#!lua name=l\nredis.register_function('f', function() return 1 end)"

def limit(session: RecordedSession, policy: str, more: int = ROOM) -> None:
    environment = session.engine.keyspace.environment
    now = environment.read(data_bytes)
    assert session.do("CONFIG", "SET", "maxmemory", str(now + more), "maxmemory-policy", policy) == b"+OK\r\n"


def kept_bytes(session: RecordedSession) -> int:
    environment = session.engine.keyspace.environment
    return environment.read(data_bytes)


def stat(session: RecordedSession, name: str) -> int:
    lines = session.do("INFO", "stats").decode().split("\r\n")
    return next(int(line.partition(":")[2]) for line in lines if line.startswith(f"{name}:"))


def test_without_eviction_what_adds_is_refused_and_all_else_goes_on(session: RecordedSession) -> None:
    limit(session, "noeviction")
    refused = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
    answers = [session.do("SET", f"k{number}", VALUE) for number in range(400)]
    assert answers[0] == b"+OK\r\n"
    assert answers[-1] == refused
    assert session.do("GET", "k0").startswith(b"$2000")
    assert session.do("XADD", "s", "*", "a", "b") == refused
    assert session.do("HSET", "h", "a", "b") == refused
    assert session.do("PUBLISH", "c", "m") == b":0\r\n"
    assert session.do("CONFIG", "SET", "maxmemory", "0") == b"+OK\r\n"
    assert session.do("SET", "again", "v") == b"+OK\r\n"


def test_the_smallest_limit_is_exceeded_by_an_empty_store(session: RecordedSession) -> None:
    """As in Redis, whose memory is never 0: programs set it to have every addition refused."""
    assert session.do("CONFIG", "SET", "maxmemory", "1") == b"+OK\r\n"
    refused = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
    assert session.do("SET", "k", "v") == refused
    assert session.do("FUNCTION", "LOAD", LIBRARY) == refused
    session.do("MULTI")
    assert session.do("LPUSH", "l", "v") == refused
    assert session.do("EXEC").startswith(b"-EXECABORT")


def test_flushed_keys_that_are_still_swept_up_do_not_put_off_the_smallest_limit(session: RecordedSession) -> None:
    for number in range(20_000):
        session.do("SET", f"k{number}", "v")
    session.do("FLUSHALL")
    session.do("CONFIG", "SET", "maxmemory", "1")
    assert session.do("SET", "k", "v").startswith(b"-OOM ")


def test_deleting_makes_room_at_once(session: RecordedSession) -> None:
    limit(session, "noeviction")
    number = 0
    while session.do("SET", f"k{number}", VALUE) == b"+OK\r\n":
        number += 1
    for each in range(30):
        assert session.do("DEL", f"k{each}") == b":1\r\n"
    assert session.do("SET", "again", VALUE) == b"+OK\r\n"


def test_a_transaction_is_refused_as_a_whole_and_so_is_what_would_be_queued(session: RecordedSession) -> None:
    limit(session, "noeviction")
    number = 0
    session.do("MULTI")
    session.do("SET", "queued", "v")
    other = RecordedSession(session.engine)
    while other.do("SET", f"k{number}", VALUE) == b"+OK\r\n":
        number += 1
    assert session.do("GET", "k0").startswith(b"-OOM")
    assert session.do("EXEC").startswith(b"-EXECABORT")
    session.do("MULTI")
    assert session.do("DISCARD") == b"+OK\r\n"
    assert other.do("EXISTS", "queued") == b":0\r\n"


@pytest.mark.parametrize("policy", ["allkeys-random", "allkeys-lru", "allkeys-lfu"])
def test_any_key_may_go_and_what_is_kept_stays_within_the_limit(session: RecordedSession, policy: str) -> None:
    limit(session, policy)
    for number in range(1000):
        assert session.do("SET", f"k{number}", VALUE) == b"+OK\r\n"
    most = session.engine.settings["maxmemory"]
    assert kept_bytes(session) <= most + 16384
    evicted = stat(session, "evicted_keys")
    assert evicted
    assert session.do("DBSIZE") == b":%d\r\n" % (1000 - evicted)


@pytest.mark.parametrize("policy", ["volatile-random", "volatile-lru", "volatile-lfu", "volatile-ttl"])
def test_only_what_expires_may_go(session: RecordedSession, policy: str) -> None:
    for number in range(50):
        session.do("SET", f"stays{number}", VALUE)
    limit(session, policy)
    for number in range(400):
        assert session.do("SET", f"k{number}", VALUE, "EX", "1000") == b"+OK\r\n"
    assert stat(session, "evicted_keys") > 0
    assert session.do("EXISTS", *[f"stays{number}" for number in range(50)]) == b":50\r\n"
    number = 0
    while session.do("SET", f"more{number}", VALUE) == b"+OK\r\n":
        number += 1
    assert session.do("GET", "more0").startswith(b"$2000")
    assert session.do("DBSIZE") == b":%d\r\n" % (50 + number)  # nothing that expires was left


@pytest.mark.parametrize("policy", ["volatile-random", "volatile-lru", "volatile-ttl", "allkeys-lru", "allkeys-random"])
def test_nobody_is_refused_while_there_are_keys_whose_time_is_over(
    house: House, session: RecordedSession, policy: str
) -> None:
    for number in range(60):
        session.do("SET", f"k{number}", VALUE, "EX", "10")
    limit(session, policy, -1)
    house.clock.now += 11
    assert session.do("SET", "k", VALUE) == b"+OK\r\n"


def test_who_expires_first_goes_first(session: RecordedSession) -> None:
    limit(session, "volatile-ttl")
    for number in range(60):
        session.do("SET", f"k{number}", VALUE, "EX", str(5000 - number))
    number = 0
    while not stat(session, "evicted_keys"):
        session.do("SET", f"filler{number}", VALUE, "EX", "100000")
        number += 1
    assert session.do("EXISTS", "k59") == b":0\r\n"
    assert session.do("EXISTS", "k0") == b":1\r\n"


def test_what_is_used_stays_longer_than_what_is_not(house: House, session: RecordedSession) -> None:
    limit(session, "allkeys-lru")
    session.do("CONFIG", "SET", "maxmemory-samples", "50")
    for number in range(60):
        session.do("SET", f"k{number}", VALUE)
    assert not stat(session, "evicted_keys")
    house.clock.now += 10
    used = [f"k{number}" for number in range(0, 60, 4)]
    for name in used:
        session.do("GET", name)
    house.clock.now += 10
    number = 0
    while stat(session, "evicted_keys") < 30:
        session.do("SET", f"filler{number}", VALUE)
        number += 1
    assert session.do("EXISTS", *used) == b":15\r\n"


def test_looking_at_a_key_is_not_to_use_it(house: House, session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    session.do("SET", "k", "v")
    for command in ("TTL", "TYPE", "EXISTS", "DUMP"):
        for _ in range(1000):
            session.do(command, "k")
    assert session.do("OBJECT", "FREQ", "k") == b":5\r\n"


def test_how_often_a_key_is_used_grows_with_uses_and_decays(house: House, session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu", "lfu-log-factor", "0")
    session.do("SET", "k", "v")
    for _ in range(20):
        session.do("GET", "k")
    assert session.do("OBJECT", "FREQ", "k") == b":25\r\n"
    house.clock.now += 600
    assert session.do("OBJECT", "FREQ", "k") == b":15\r\n"
    session.do("CLIENT", "NO-TOUCH", "ON")
    session.do("GET", "k")
    assert session.do("OBJECT", "FREQ", "k") == b":15\r\n"


def test_how_often_it_was_used_comes_with_a_dump(session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "maxmemory-policy", "allkeys-lfu")
    session.do("SET", "k", "v")
    payload = session.do("DUMP", "k").split(b"\r\n", 1)[1][:-2]
    assert session.do(b"RESTORE", b"copy", b"0", payload, b"FREQ", b"100") == b"+OK\r\n"
    assert session.do("OBJECT", "FREQ", "copy") == b":100\r\n"


def test_evictions_are_told_and_watched(house: House, session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "notify-keyspace-events", "Ee")
    watcher, listener = house.session(), house.session()
    listener.do("SUBSCRIBE", "__keyevent@0__:evicted")
    session.do("SET", "watched", "v", "EX", "5")
    watcher.do("WATCH", "watched")
    limit(session, "volatile-ttl", 40_000)
    for number in range(60):
        session.do("SET", f"k{number}", VALUE, "EX", "1000")
    assert b"$7\r\nwatched\r\n" in listener.heard()
    watcher.do("MULTI")
    watcher.do("PING")
    assert watcher.do("EXEC") == b"*-1\r\n"


def test_a_lower_limit_is_reached_without_anybody_asking(house: House, session: RecordedSession) -> None:
    for number in range(300):
        session.do("SET", f"k{number}", VALUE)
    most = kept_bytes(session) // 2
    session.do("CONFIG", "SET", "maxmemory", str(most), "maxmemory-policy", "allkeys-random")
    for _ in range(100):
        house.clock.now += 0.1
        house.engine.cron(house.clock.now)
    assert kept_bytes(session) <= most


def test_large_values_are_swept_up_before_more_keys_go(session: RecordedSession) -> None:
    session.do("RPUSH", "list", *[VALUE] * 100)
    limit(session, "allkeys-lru", 40_000)
    for number in range(60):
        assert session.do("SET", f"k{number}", VALUE) == b"+OK\r\n"
    assert session.do("EXISTS", "list") == b":0\r\n"
    assert stat(session, "evicted_keys") < 30


def test_where_there_is_no_limit_commands_go_the_plain_way(session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "slowlog-log-slower-than", "10000")
    assert session.engine.plain
    session.do("CONFIG", "SET", "maxmemory", "1gb")
    assert not session.engine.plain
    session.do("CONFIG", "SET", "maxmemory", "0")
    assert session.engine.plain


def test_small_integers_are_shared_unless_the_use_of_each_key_is_noted(session: RecordedSession) -> None:
    session.do("SET", "k", "1")
    assert session.do("OBJECT", "REFCOUNT", "k") == b":2147483647\r\n"
    session.do("CONFIG", "SET", "maxmemory", "1gb")
    assert session.do("OBJECT", "REFCOUNT", "k") == b":2147483647\r\n", "noeviction notes nothing"
    session.do("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    assert session.do("OBJECT", "REFCOUNT", "k") == b":1\r\n"
    session.do("CONFIG", "SET", "maxmemory", "0")
    assert session.do("OBJECT", "REFCOUNT", "k") == b":2147483647\r\n"


def room_for(session: RecordedSession, keys: int) -> None:
    """Set a quota that these keys nearly fill."""
    session.engine.keyspace.environment.room.quota_bytes = kept_bytes(session) + keys * len(VALUE)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-ttl"])
def test_a_store_at_its_quota_evicts_as_the_policy_says(session: RecordedSession, policy: str) -> None:
    session.do("CONFIG", "SET", "maxmemory-policy", policy)
    session.do("SET", "kept", VALUE)
    room_for(session, 200)
    for number in range(1000):
        assert session.do("SET", f"k{number}", VALUE, "EX", "1000") == b"+OK\r\n"
    assert 500 < stat(session, "evicted_keys") < 1000


def test_at_a_quota_what_has_expired_goes_first(house: House, session: RecordedSession) -> None:
    session.do("CONFIG", "SET", "maxmemory-policy", "noeviction")
    room_for(session, 200)
    number = 0
    while session.do("SET", f"k{number}", VALUE, "PX", "1000") == b"+OK\r\n":
        number += 1
    house.clock.now += 2
    for each in range(number - 10):
        assert session.do("SET", f"new{each}", VALUE) == b"+OK\r\n"
    assert stat(session, "expired_keys") >= 50


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-random", "allkeys-random"])
def test_what_has_expired_goes_before_anything_is_evicted(
    house: House, session: RecordedSession, policy: str
) -> None:
    session.do("DEBUG", "SET-ACTIVE-EXPIRE", "1")
    limit(session, policy)
    for number in range(40):
        session.do("SET", f"stays{number}", VALUE, "EX", "10000")
        session.do("SET", f"goes{number}", VALUE, "EX", "10")
    house.clock.now += 11
    for number in range(40):
        assert session.do("SET", f"new{number}", VALUE) == b"+OK\r\n"
    assert stat(session, "evicted_keys") == 0
    assert stat(session, "expired_keys") > 0


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-lru"])
def test_who_goes_is_among_the_least_used(house: House, session: RecordedSession, policy: str) -> None:
    """Redis's sampling evicts few of the more recently used half, and so does ours."""
    limit(session, policy)
    session.do("CONFIG", "SET", "maxmemory", "100mb")
    for number in range(2000):
        house.clock.now += 0.1
        session.do("SET", f"k{number}", "x" * 200, "EX", str(5000 + 7919 * number % 4000))
    most = kept_bytes(session)
    session.do("CONFIG", "SET", "maxmemory", str(most))
    number = 0
    while stat(session, "evicted_keys") < 400:
        session.do("SET", f"filler{number}", "x" * 200, "EX", "10000")
        number += 1
    gone = [number for number in range(2000) if session.do("EXISTS", f"k{number}") == b":0\r\n"]
    assert len(gone) > 300
    assert sum(number >= 1000 for number in gone) < len(gone) / 10


def test_keys_are_looked_at_in_proportion_to_what_comes(
    session: RecordedSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sample and each look at what is taken is good for several keys: one command at a time, that cost 1 ms."""
    limit(session, "allkeys-lru")
    session.do("CONFIG", "SET", "maxmemory", "100mb")
    for number in range(2000):
        session.do("SET", f"k{number}", "x" * 100)
    samples = 0
    bytes_of_luck = random.randbytes

    def counted(count: int) -> bytes:
        nonlocal samples
        samples += 1
        return bytes_of_luck(count)

    monkeypatch.setattr(random, "randbytes", counted)
    session.do("CONFIG", "SET", "maxmemory", str(kept_bytes(session)))
    for number in range(500):
        session.do("SET", f"new{number}", "x" * 100)
    evicted = stat(session, "evicted_keys")
    assert evicted > 4 * samples > 0


def in_one_turn(session: RecordedSession, *requests: tuple[str, ...]) -> int:
    """How many of the keys that these requests have changed the store has yet to be told."""
    for request in requests:
        assert execute(session, [word.encode() for word in request])
    unwritten = len(session.engine.keyspace.stored.unwritten)
    session.engine.commit()
    session.said.clear()
    return unwritten


def test_as_long_as_little_is_added_the_store_is_not_told_before_each_command_what_it_holds(
    session: RecordedSession,
) -> None:
    limit(session, "allkeys-lru", 4_000_000)
    session.do("SET", "k", "v")
    sets = [("SET", f"k{number}", VALUE) for number in range(20)]
    assert in_one_turn(session, *sets) == 20
    assert in_one_turn(session, *[("HSET", f"h{number}", "f", VALUE) for number in range(20)]) == 20
    assert in_one_turn(session, *sets, ("SETRANGE", "k", "100", "x")) == 1, "it may add more than it says"


def test_what_adds_more_than_its_arguments_is_refused_within_a_turn(session: RecordedSession) -> None:
    limit(session, "noeviction", 4_000_000)
    session.do("SET", "k", "v")
    for number in range(30):
        assert execute(session, [b"SETRANGE", b"r%d" % number, b"300000", b"x"])
    session.engine.commit()
    assert session.said.count(b":300001\r\n") in (13, 14)
    assert session.do("DBSIZE") != b":31\r\n"


def test_the_least_often_used_rank_first_and_uses_of_long_ago_count_less() -> None:
    usage = Often(log_factor=0, decay_minutes=1)
    keys = [(number % 3, b"%d" % number) for number in range(50)]
    now = 1e9
    for number, (database, name) in enumerate(keys):
        for _ in range(7 * number % 50):
            usage.used(database, name, now + 60 * (number % 10))
    later = now + 60 * 12
    ranked = usage.ranked(keys, later)
    assert sorted(ranked) == sorted(keys)
    worths = [usage.worth(database, name, later) for database, name in ranked]
    assert worths == sorted(worths) and len(set(worths)) > 10
