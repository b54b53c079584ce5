"""SORT: the same random requests to ours and to the real server get the same replies,
publish the same events in the same order, and leave the same behind."""

from __future__ import annotations

import os

import pytest

from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.sort_commands import LISTS, MIXED, STORED, Requests
from compat_tests.test_random_collections import events
from compat_tests.transcript import Frame, frames
from compat_tests.wire import Wire

REQUESTS = 1000
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
STATE_EVERY = 20


def comparable(words: list[bytes], frame: Frame, queued: list[list[bytes]]) -> Frame:
    """A reply as it is: the requests ask for nothing that is left to chance."""
    return frame


def state(wire: Wire) -> list[bytes]:
    """All that can be told of every key."""
    told: list[bytes] = []
    for key in (*LISTS, MIXED, STORED):
        told += [wire.ask(b"OBJECT", b"ENCODING", key), wire.ask(b"TYPE", key), wire.ask(b"DUMP", key)]
        told.append(wire.ask(b"LRANGE", key, b"0", b"-1"))
    return told


@in_turn(SEEDS)
def test_sorting_answers_and_tells_what_redis_does(
    ours: SocketServer, theirs: SocketServer, protocol: int, seed: int
) -> None:
    servers = (ours, theirs)
    theirs.client().config_set("rdbcompression", "no")
    wires, listeners, watchers = ([server.wire(protocol) for server in servers] for _ in range(3))
    for server, wire, listener in zip(servers, wires, listeners, strict=True):
        server.client().config_set("notify-keyspace-events", "KEA")
        wire.ask(b"FLUSHALL")
        wire.ask(b"SET", b"text", b"x")
        listener.ask(b"PSUBSCRIBE", b"__key*")
    requests = Requests(seed)
    said: list[list[bytes]] = []
    for step in range(REQUESTS):
        words = requests.next()
        said.append([word[:20] for word in words[:12]])
        mine, yours = (comparable(words, frames(wire.ask(*words))[0], []) for wire in wires)
        assert mine == yours, f"after {said[-10:]}"
        mine_told, yours_told = (events(listener) for listener in listeners)
        assert mine_told == yours_told, f"after {said[-10:]}"
        if step % STATE_EVERY == 0:
            mine_state, yours_state = (state(watcher) for watcher in watchers)
            assert mine_state == yours_state, f"after {said[-STATE_EVERY:]}"
    for server in servers:
        server.client().config_set("notify-keyspace-events", "")


_RIGHTS = (
    b"+@all ~*", b"+@all ~l1", b"+@all %R~* ~stored", b"+@all %W~* ~l1", b"+@all ~l1 ~w_*",
    b"+@all ~l1 ~stored (+@all %R~*)", b"+sort ~l1 (+get ~*)",
)  # fmt: skip
_ASKED = (
    b"SORT l1",
    b"SORT l1 BY w_*",
    b"SORT l1 BY nosort",
    b"SORT l1 GET #",
    b"SORT l1 GET w_* STORE stored",
    b"SORT_RO l1 BY w_*",
    b"SORT l1 STORE stored",
    b"SORT l1 STORE other",
    b"SORT l1 STORE other STORE stored",
    b"SORT none BY w_* LIMIT x x",
)


@pytest.mark.parametrize("rights", _RIGHTS)
def test_who_may_not_read_every_key_may_not_sort_by_any(
    ours: SocketServer, theirs: SocketServer, protocol: int, rights: bytes
) -> None:
    wires = [server.wire(protocol) for server in (ours, theirs)]
    for wire in wires:
        wire.ask(b"FLUSHALL")
        wire.ask(b"RPUSH", b"l1", b"2", b"1")
        wire.ask(b"ACL", b"SETUSER", b"sorter", b"reset", b"on", b"nopass", *_rules(rights))
        wire.ask(b"AUTH", b"sorter", b"x")
    for request in _ASKED:
        mine, yours = (wire.ask(*request.split()) for wire in wires)
        assert mine == yours, request
    for server in (ours, theirs):
        server.wire(protocol).ask(b"ACL", b"DELUSER", b"sorter")


def _rules(rights: bytes) -> list[bytes]:
    """A selector is one word."""
    root, bracket, selector = rights.partition(b" (")
    return [*root.split(), *([b"(" + selector] if bracket else [])]
