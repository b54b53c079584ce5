"""Lists, sets, hashes, bits and HyperLogLogs: the same random requests to ours and to the real server get the same
replies, publish the same events in the same order, and leave the same behind."""

from __future__ import annotations

import os
import random

import pytest

from compat_tests.collection_commands import COUNTERS, HASHES, LISTS, SETS, TEXTS, Requests
from compat_tests.seeds import in_turn
from compat_tests.servers import SocketServer
from compat_tests.transcript import Frame, frames
from compat_tests.wire import Wire

REQUESTS = 1500
SEEDS = range(int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 100)
UNORDERED = frozenset((b"smembers", b"spop", b"srandmember", b"sinter", b"sunion", b"sdiff", b"hkeys", b"hvals"))
STATE_EVERY = 20
QUEUED = (b"+", b"QUEUED")


def comparable(words: list[bytes], frame: Frame, queued: list[list[bytes]]) -> Frame:
    """A reply; the order of a hash table's members means nothing, and of what is drawn only the number does."""
    kind, content = frame
    name = words[0].lower() if words else b""
    if not isinstance(content, list):
        return frame
    if name == b"exec":
        return kind, [comparable(one, part, []) for one, part in zip(queued, content, strict=True)]
    if name in (b"srandmember", b"hrandfield") and words[2].startswith(b"-"):
        return kind, b"%d" % len(content)
    if name in UNORDERED:
        return kind, sorted(content, key=repr)
    if name == b"hgetall" or (name == b"hrandfield" and len(words) > 3 and content and content[0][0] == b"$"):
        return kind, _pairs(content)
    if name == b"hrandfield":
        return kind, sorted(content, key=repr)
    if name in (b"sscan", b"hscan") and len(content) == 2 and isinstance(content[1][1], list):
        members = content[1][1]
        return kind, [content[0], (b"*", _pairs(members) if name == b"hscan" else sorted(members, key=repr))]
    return frame


def _pairs(words: list[Frame]) -> list[Frame]:
    """Fields and values that stand by turns, in one order."""
    pairs: list[Frame] = [(b"pair", list(pair)) for pair in zip(words[::2], words[1::2], strict=True)]
    return sorted(pairs, key=repr)


def events(wire: Wire) -> list[bytes]:
    """What was published since the last look."""
    wire.say(b"PING", b"end")
    heard: list[bytes] = []
    while True:
        frame = frames(wire.read())[0]
        words = [word for _, word in frame[1]] if isinstance(frame[1], list) else [frame[1]]
        if words in ([b"end"], [b"pong", b"end"]):
            return heard
        heard.append(b" ".join(words[-2:]))  # type: ignore[arg-type]


def state(wire: Wire) -> list[bytes]:
    """All that can be told of every key: hash tables by their digests, and sets of integers, too, because Redis goes on
    using the width that the widest member needed once; all else by its bytes."""
    keys = [*LISTS, *SETS, *HASHES, *TEXTS, *COUNTERS]
    told = [wire.ask(b"DEBUG", b"DIGEST-VALUE", *keys)]
    for key in keys:
        encoding = wire.ask(b"OBJECT", b"ENCODING", key)
        told += [encoding, wire.ask(b"TYPE", key)]
        if b"hashtable" not in encoding and b"intset" not in encoding:
            told.append(wire.ask(b"DUMP", key))
    return told


@in_turn(SEEDS)
def test_collections_answer_and_tell_what_redis_does(
    ours: SocketServer, theirs: SocketServer, protocol: int, seed: int
) -> None:
    servers = (ours, theirs)
    theirs.client().config_set("rdbcompression", "no")
    wires, listeners, watchers = ([server.wire(protocol) for server in servers] for _ in range(3))
    for server, wire, listener in zip(servers, wires, listeners, strict=True):
        server.client().config_set("notify-keyspace-events", "KEA")
        wire.ask(b"FLUSHALL")
        wire.ask(b"SET", b"text", b"x")
        wire.ask(b"XADD", b"topic", b"1-1", b"a", b"1")
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


@pytest.mark.parametrize("at_once", [1, 40, 500])
def test_hyperloglogs_are_the_same_bytes_all_the_way_until_they_are_dense(
    ours: SocketServer, theirs: SocketServer, at_once: int
) -> None:
    luck = random.Random(at_once)
    mine, yours = ours.client(), theirs.client()
    for _ in range(2500 // at_once):
        elements = [b"%d" % luck.getrandbits(60) for _ in range(at_once)]
        assert mine.pfadd("p", *elements) == yours.pfadd("p", *elements)
        assert mine.get("p") == yours.get("p")
    assert mine.execute_command("PFDEBUG", "ENCODING", "p") == b"dense"
    assert mine.pfcount("p") == yours.pfcount("p")


def test_merged_hyperloglogs_are_the_same_bytes(ours: SocketServer, theirs: SocketServer) -> None:
    luck = random.Random(3)
    clients = ours.client(), theirs.client()
    for size in (10, 300, 300, 300, 1200, 1200, 5000, 0):
        elements = [b"%d" % luck.getrandbits(60) for _ in range(size)]
        for name in ("other", "merged"):
            for client in clients:
                if name == "other":
                    client.delete(name)
                    client.pfadd(name, *elements)
                else:
                    client.pfmerge(name, "other")
            mine, yours = (client.get(name) for client in clients)
            assert mine == yours, (size, name)


def test_registers_that_no_elements_lead_to_are_counted_as_redis_counts_them(
    ours: SocketServer, theirs: SocketServer, protocol: int
) -> None:
    wires = [server.wire(protocol) for server in (ours, theirs)]
    head = b"HYLL" + bytes(11) + b"\x80"
    luck = random.Random(4)
    bodies = [(value | value << 6 | value << 12 | value << 18).to_bytes(3, "little") * 4096 for value in range(64)]
    bodies += [bytes((value,)) * 12288 for value in luck.sample(range(256), 30)]
    bodies += [luck.randbytes(12288) for _ in range(20)]
    for body in bodies:
        for words in ([b"SET", b"p", head + body], [b"PFCOUNT", b"p"], [b"PFCOUNT", b"p", b"q"], [b"GET", b"p"]):
            mine, yours = (wire.ask(*words) for wire in wires)
            assert mine == yours, (words[:2], body[:3])
