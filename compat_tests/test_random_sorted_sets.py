"""Sorted sets: the same random requests to ours and to the real server get the same replies, publish the same events in
the same order, and leave the same behind."""

from __future__ import annotations

import os

from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.sorted_set_commands import FLAT, SORTED_SETS, Requests
from compat_tests.test_random_collections import QUEUED, events
from compat_tests.transcript import Frame, frames
from compat_tests.wire import Wire

REQUESTS = 1500
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
STATE_EVERY = 20


def comparable(words: list[bytes], frame: Frame, queued: list[list[bytes]]) -> Frame:
    """A reply; the order of a scan means nothing, and of what is drawn only the number does."""
    kind, content = frame
    name = words[0].lower() if words else b""
    if name == b"zrandmember" and kind == b"$":
        return kind, content is None
    if not isinstance(content, list):
        return frame
    if name == b"exec":
        return kind, [comparable(one, part, []) for one, part in zip(queued, content, strict=True)]
    if name == b"zrandmember":
        if words[2].startswith(b"-"):
            return kind, b"%d" % len(content)
        return kind, sorted(content, key=repr)
    if name == b"zscan" and len(words) < 5:
        return kind, len(content)
    if name == b"zscan" and len(content) == 2 and isinstance(content[1][1], list):
        return kind, [content[0], (b"*", sorted(content[1][1], key=repr))]
    return frame


def state(wire: Wire) -> list[bytes]:
    """All that can be told of every key."""
    keys = [*SORTED_SETS, FLAT]
    told = [wire.ask(b"DEBUG", b"DIGEST-VALUE", *keys)]
    for key in keys:
        told += [wire.ask(b"OBJECT", b"ENCODING", key), wire.ask(b"TYPE", key), wire.ask(b"DUMP", key)]
        told.append(wire.ask(b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"))
    return told


@in_turn(SEEDS)
def test_sorted_sets_answer_and_tell_what_redis_does(
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
    queued: list[list[bytes]] = []
    for step in range(REQUESTS):
        words = requests.next()
        said.append([word[:20] for word in words[:12]])
        mine, yours = (comparable(words, frames(wire.ask(*words))[0], queued) for wire in wires)
        assert mine == yours, f"after {said[-10:]}"
        queued = [*queued, words] if mine == QUEUED else [] if words[:1] == [b"EXEC"] else queued
        mine_told, yours_told = (events(listener) for listener in listeners)
        assert mine_told == yours_told, f"after {said[-10:]}"
        if step % STATE_EVERY == 0:
            mine_state, yours_state = (state(watcher) for watcher in watchers)
            assert mine_state == yours_state, f"after {said[-STATE_EVERY:]}"
    for server in servers:
        server.client().config_set("notify-keyspace-events", "")
