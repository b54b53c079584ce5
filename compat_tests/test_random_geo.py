"""Places in sorted sets: the same random requests to ours and to the real server get the same replies, to the digit,
publish the same events in the same order, and leave the same behind."""

from __future__ import annotations

import os

from compat_tests.geo_commands import EDGES, PLACES, SCORES, STORED, Requests
from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.test_random_collections import events
from compat_tests.transcript import Frame, frames
from compat_tests.wire import Wire

REQUESTS = 1000
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
STATE_EVERY = 20


def comparable(words: list[bytes], frame: Frame, queued: list[list[bytes]]) -> Frame:
    """A reply as it is: nothing about places is left to chance."""
    return frame


def state(wire: Wire) -> list[bytes]:
    """All that can be told of every key."""
    told: list[bytes] = []
    for key in (*PLACES, EDGES, SCORES, STORED):
        told += [wire.ask(b"OBJECT", b"ENCODING", key), wire.ask(b"TYPE", key), wire.ask(b"DUMP", key)]
        told.append(wire.ask(b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"))
    return told


@in_turn(SEEDS)
def test_places_answer_and_tell_what_redis_does(
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
