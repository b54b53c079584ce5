"""Scripts: what they answer, whom they tell of what they change and what they leave behind is what Redis's would."""

from __future__ import annotations

import os
import re

import pytest

from compat_tests.script_commands import KEYS, Requests
from compat_tests.script_sources import BY_THEMSELVES, OF_KEYS
from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.test_random_collections import events
from compat_tests.wire import Wire

REQUESTS = 1000
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
STATE_EVERY = 20
TOLERANCE_S = 20
"""Less than the least time to live that the scripts set, which is 100 seconds."""
_INTEGER = re.compile(rb"(?<=:)\d+(?=\r\n)")
_FILLED = ("HSET h f v g w", "SADD s b a c 10 9", "ZADD z 1.5 m 2 n", "SET k1 v", "XADD st 1-1 a b",
           "XGROUP CREATE st g 0")  # fmt: skip
_REQUESTS = (
    "EVAL", "EVAL x", "EVAL x x", "EVAL x -1", "EVAL x 2 a", "EVAL return+1 99999999999999999999", "EVALSHA x 0",
    "EVALSHA x x", "EVAL_RO return+redis.call('set','a','b') 0", "EVAL_RO return+redis.call('publish','a','b') 0",
    "EVAL_RO return+redis.call('get','k1') 0", "SCRIPT", "SCRIPT LOAD", "SCRIPT LOAD x=", "SCRIPT LOAD return+1",
    "SCRIPT EXISTS",
    "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db E0E1F9FABFC9D4800C877A703B823AC0578FF8DB x",
    "SCRIPT FLUSH a b", "SCRIPT KILL", "SCRIPT KILL x", "SCRIPT DEBUG", "SCRIPT DEBUG x", "SCRIPT DEBUG no",
    "SCRIPT HELP x", "SCRIPT nope", "EVALSHA_RO x 0", "EVALSHA_RO e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
    "SCRIPT FLUSH", "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
)  # fmt: skip
_SHEBANGS = (
    "#!lua", "#!", "#!lua|return 1", "#!|return 1", "#!lua flags=no-writes|return redis.call('set','x','y')",
    "#!lua flags=no-writes,allow-oom|return 1", "#!lua flags=|return 1", "#!lua flags=bad|return 1",
    "#!lua name=x|return 1", "#!python|return 1", '#!lua "flags=no-writes"|return 1', '#!lua "flags|return 1',
    "#!lua flags=no-cluster,allow-stale,allow-cross-slot-keys|error('x')", "#!lua flags=no-writes,|return 1",
    "#!lua  |return 1", "#!LUA|return 1", "#! lua|return 1", " #!lua|return 1", "# x|return 1",
)  # fmt: skip

_NAMES_OF_CHUNKS = tuple(
    f"""local asked, junk = 0, {{}}
        local function reader()
            asked = asked + 1
            if asked == 2 then
                collectgarbage()
                for i = 1, 2000 do junk[i] = '{likeness}' .. i end
                return 'x = = 1'
            end
        end
        return {{asked, select(2, load(reader{name}))}}"""
    for likeness, name in (("=(loa", ""), ("=ab", r", '=abcdefgh\0z'"), ("7", ", 77777"))
)
"""`load` asks its reader once more at the end, when only the caller keeps the name of the chunk from being freed."""


def pair(ours: SocketServer, theirs: SocketServer, protocol: int) -> list[Wire]:
    wires = [server.wire(protocol) for server in (ours, theirs)]
    for wire in wires:
        wire.ask(b"FLUSHALL")
        wire.ask(b"SCRIPT", b"FLUSH")
    return wires


def test_scripts_find_and_return_what_they_do_in_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int
) -> None:
    wires = pair(ours, theirs, protocol)
    for words in _FILLED:
        for wire in wires:
            wire.ask(*words.encode().split())
    for source in (*BY_THEMSELVES, *OF_KEYS, *_NAMES_OF_CHUNKS):
        mine, yours = (wire.ask(b"EVAL", source.encode(), b"1", b"h", b"v") for wire in wires)
        assert mine == yours, source


def test_requests_that_name_scripts_are_refused_as_by_redis(
    ours: SocketServer, theirs: SocketServer, protocol: int
) -> None:
    wires = pair(ours, theirs, protocol)
    for line in _REQUESTS:
        words = [word.replace("+", " ").encode() for word in line.split()]
        mine, yours = (wire.ask(*words) for wire in wires)
        assert mine == yours, words
    for body in _SHEBANGS:
        source = body.replace("|", "\n").encode()
        for words in ([b"EVAL", source, b"0"], [b"EVAL_RO", source, b"0"], [b"SCRIPT", b"LOAD", source]):
            mine, yours = (wire.ask(*words) for wire in wires)
            assert mine == yours, words


def same_but_for_time(mine: bytes, yours: bytes) -> bool:
    """Numbers may be the seconds that a key has left, which go on between two servers."""
    if _INTEGER.sub(b"", mine) != _INTEGER.sub(b"", yours):
        return False
    numbers = ([int(number) for number in _INTEGER.findall(reply)] for reply in (mine, yours))
    return all(a == b or (min(a, b) > TOLERANCE_S and abs(a - b) < TOLERANCE_S) for a, b in zip(*numbers, strict=True))


def state(wire: Wire) -> list[bytes]:
    values = wire.ask(b"DEBUG", b"DIGEST-VALUE", *KEYS)
    return [values, *(wire.ask(b"TYPE", key) for key in KEYS)]


def times(wire: Wire) -> bytes:
    return b"".join(wire.ask(b"TTL", key) for key in KEYS)


@in_turn(SEEDS)
def test_random_scripts_answer_and_tell_what_redis_does(
    ours: SocketServer, theirs: SocketServer, protocol: int, seed: int
) -> None:
    servers = (ours, theirs)
    wires = pair(ours, theirs, protocol)
    listeners, watchers = ([server.wire(protocol) for server in servers] for _ in range(2))
    for server, listener in zip(servers, listeners, strict=True):
        server.client().config_set("notify-keyspace-events", "KEA")
        listener.ask(b"PSUBSCRIBE", b"__key*")
    requests = Requests(seed)
    said: list[list[bytes]] = []
    for step in range(REQUESTS):
        words = requests.next()
        said.append(words)
        mine, yours = (wire.ask(*words) for wire in wires)
        is_timed = any(b"'ttl'" in word for word in words)
        assert mine == yours or (is_timed and same_but_for_time(mine, yours)), f"after {said[-10:]}"
        mine_told, yours_told = (events(listener) for listener in listeners)
        assert mine_told == yours_told, f"after {said[-10:]}"
        if step % STATE_EVERY == 0:
            mine_state, yours_state = (state(watcher) for watcher in watchers)
            assert mine_state == yours_state, f"after {said[-STATE_EVERY:]}"
            mine_times, yours_times = (times(watcher) for watcher in watchers)
            assert same_but_for_time(mine_times, yours_times), f"{mine_times!r} {yours_times!r} {said[-STATE_EVERY:]}"
    for server in servers:
        server.client().config_set("notify-keyspace-events", "")


_OF_A_REPLICA = (
    "return 'a'", "return redis.call('get', 'x')", "return redis.call('set', 'x', 1)", "#!lua\nreturn 1",
    "#!lua flags=no-writes\nreturn 1", "#!lua flags=allow-stale\nreturn 1", "#!lua\nreturn redis.call('set', 'x', 1)",
    "#!lua flags=allow-stale,no-writes\nreturn redis.call('get', 'x')",
    "#!lua flags=no-writes\nreturn redis.call('get', 'x')",
    "#!lua flags=no-writes,allow-stale\nreturn redis.pcall('set', 'x', 1)",
    "#!lua flags=no-writes,allow-stale\nreturn redis.call('ping')",
    "return redis.pcall('set', 'x', 1)", "return {pcall(redis.call, 'set', 'x', 1)}",
)  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((b"REPLICAOF", b"127.0.0.1", b"1"), (b"REPLICAOF", b"NO", b"ONE")),
        ((b"CONFIG", b"SET", b"min-replicas-to-write", b"1"), (b"CONFIG", b"SET", b"min-replicas-to-write", b"0")),
    ],
    ids=["replicas", "masters without"],
)
@pytest.mark.parametrize("serves_stale_data", [b"yes", b"no"])
def test_replicas_and_masters_without_enough_of_them_refuse_scripts_as_redis_does(
    ours: SocketServer,
    theirs: SocketServer,
    protocol: int,
    serves_stale_data: bytes,
    before: tuple[bytes, ...],
    after: tuple[bytes, ...],
) -> None:
    wires = pair(ours, theirs, protocol)
    library = "#!lua name=test\n" + "\n".join(
        f"redis.register_function{{function_name='f{number}', flags={{{flags}}}, callback=function() {code} end}}"
        for number, (flags, code) in enumerate(
            (flags, code)
            for flags in ("", "'no-writes'", "'allow-stale'", "'no-writes', 'allow-stale'")
            for code in ("return 1", "return redis.call('get', 'x')", "return redis.call('set', 'x', 1)")
        )
    )
    for wire in wires:
        wire.ask(b"FUNCTION", b"LOAD", b"REPLACE", library.encode())
        assert wire.ask(b"CONFIG", b"SET", b"replica-serve-stale-data", serves_stale_data) == b"+OK\r\n"
        assert wire.ask(*before) == b"+OK\r\n"
    try:
        calls = [(name, source.encode()) for source in _OF_A_REPLICA for name in (b"EVAL", b"EVAL_RO")]
        calls += [(name, b"f%d" % number) for number in range(12) for name in (b"FCALL", b"FCALL_RO")]
        for name, called in calls:
            mine, yours = (wire.ask(name, called, b"1", b"x") for wire in wires)
            assert mine == yours, (name, called)
    finally:
        for wire in wires:
            wire.ask(*after)
            wire.ask(b"CONFIG", b"SET", b"replica-serve-stale-data", b"yes")
            wire.ask(b"FUNCTION", b"FLUSH")
