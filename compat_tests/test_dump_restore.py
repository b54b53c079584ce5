"""DUMP and RESTORE: what one server dumps the other restores, whichever of them it is, and both say no alike."""

from __future__ import annotations

import os
import random
from itertools import permutations
from typing import Any

import pytest
import redis
from patience import PATIENCE_S
from ziplists import ziplist

from compat_tests.servers import SocketServer
from compat_tests.transcript import frames
from rlite_pubsub.protocol.rdb import envelope, listpack

CONTENTS = int(os.environ.get("RLITE_COMPAT_EXAMPLES", 400)) // 8
NUMBERS = [0, 1, -1, 12, 13, 127, 128, 4095, -4096, 4096, 1 << 15, -(1 << 15), 1 << 23, -(1 << 23) - 1, 1 << 31]
NUMBERS += [-(1 << 31), (1 << 63) - 1, -(1 << 63), 1 << 63]
LENGTHS = [0, 1, 11, 12, 20, 21, 63, 64, 125, 126, 4095, 4096, 9000, 16400]


def word(luck: random.Random) -> bytes:
    """An integer or a string, at the borders of how such are packed, compressible or not."""
    if luck.random() < 0.4:
        return b"%d" % (luck.choice(NUMBERS) + luck.choice([0, 0, 1, -1]))
    if luck.random() < 0.1:
        return luck.choice([b"007", b"+1", b"-0", b" 1", b"\r\n", b"$3\r\n", b"-", b"\xff\0"])
    length = luck.choice(LENGTHS) if luck.random() < 0.3 else luck.randrange(40)
    return luck.randbytes(length) if luck.random() < 0.5 else bytes([luck.randrange(256)]) * length


def fill(luck: random.Random, client: redis.Redis, key: str) -> None:
    """Anything of a type that both have."""
    words = [word(luck) for _ in range(luck.choice([1, 3, 40, 700]))]
    match luck.randrange(7):
        case 0:
            client.set(key, word(luck))
        case 1:
            client.rpush(key, *words)
        case 2:
            client.sadd(key, *words)
        case 3:
            client.sadd(key, *[b"%d" % luck.choice(NUMBERS[:-1]) for _ in words])
        case 4:
            client.hset(key, mapping={one: word(luck) for one in words})
        case _:
            fill_stream(luck, client, key)


def fill_stream(luck: random.Random, client: redis.Redis, key: str) -> None:
    ids: list[str] = []
    ms, seq = 1, 0
    fields: dict[Any, Any] = {b"a": b"", b"b": b""}
    for _ in range(luck.choice([0, 1, 5, 300])):
        ms, seq = luck.choice([(ms, seq + 1), (ms, seq + (1 << 40)), (ms + 1, 0), (ms + (1 << 33), 5)])
        if luck.random() < 0.2:
            fields = {word(luck): b"" for _ in range(luck.randrange(1, 4))}
        client.xadd(key, {field: word(luck) for field in fields}, f"{ms}-{seq}")
        ids.append(f"{ms}-{seq}")
    if ids and luck.random() < 0.6:
        client.xdel(key, *luck.sample(ids, luck.randrange(1, len(ids) + 1)))
    if luck.random() < 0.3:
        client.xtrim(key, len(ids) // 2, approximate=False)
    for number in range(0 if ids and luck.random() < 0.3 else luck.randrange(1, 4)):
        group = f"g{number}"
        client.xgroup_create(key, group, luck.choice(["0", "$", "1-3"]), mkstream=True)
        for _ in range(luck.randrange(6)):
            consumer = luck.choice(["c1", "c2", "7"])
            client.xreadgroup(group, consumer, {key: ">"}, count=luck.randrange(1, 60))
        if ids:
            client.xack(key, group, *luck.sample(ids, luck.randrange(1, len(ids) + 1)))
            some = luck.sample(ids, min(len(ids), 5))
            client.xclaim(key, group, "c3", 0, some, retrycount=luck.randrange(1 << 40), justid=True)


def content(client: redis.Redis, key: str) -> list[Any]:
    """All that can be told of a key, but for what depends on the clock."""
    kind = client.type(key)
    if kind == b"string":
        return [kind, client.get(key)]
    if kind == b"list":
        return [kind, client.lrange(key, 0, -1)]
    if kind == b"set":
        return [kind, client.smembers(key), client.object("ENCODING", key)]
    if kind == b"hash":
        return [kind, client.hgetall(key), client.object("ENCODING", key)]
    information = client.execute_command("XINFO", "STREAM", key, "FULL", "COUNT", "0")
    for layout in (b"radix-tree-keys", b"radix-tree-nodes", "radix-tree-keys", "radix-tree-nodes"):
        information.pop(layout, None)
    return [kind, client.execute_command("DEBUG", "DIGEST-VALUE", key), client.xrange(key), repr(information)]


@pytest.mark.parametrize("seed", range(CONTENTS))
def test_what_one_dumps_the_other_restores(ours: SocketServer, theirs: SocketServer, seed: int) -> None:
    for source, target in permutations((ours.client(), theirs.client())):
        fill(random.Random(seed), source, "from")
        payload = source.dump("from")
        if payload is None:  # the random set of commands has left nothing
            continue
        target.restore("to", 0, payload)
        assert content(target, "to") == content(source, "from")
        source.restore("back", 0, target.dump("to"))
        assert content(source, "back") == content(source, "from")


def test_a_restored_topic_goes_on(ours: SocketServer, theirs: SocketServer) -> None:
    for source, target in permutations((ours.client(), theirs.client())):
        source.delete("s")
        target.delete("s")
        fill_stream(random.Random(3), source, "s")
        source.xgroup_create("s", "late", "0", mkstream=True)
        source.xadd("s", {"a": "1"}, f"{1 << 60}-1")
        target.restore("s", 0, source.dump("s"))
        for client in (source, target):
            client.xadd("s", {"a": "2"}, f"{1 << 60}-2")
            client.xreadgroup("late", "me", {"s": ">"}, count=2)
            client.xautoclaim("s", "g0", "other", 0)
            client.xgroup_createconsumer("s", "late", "another")
        replies = [[c.xrange("s"), c.xpending("s", "late"), c.xpending("s", "g0"), c.xinfo_groups("s")]
                   for c in (source, target)]
        assert replies[0] == replies[1]


def both(ours: SocketServer, theirs: SocketServer, protocol: int, *words: bytes) -> object:
    """What both answer, which is the same."""
    mine, yours = (frames(server.wire(protocol).ask(*words))[0] for server in (ours, theirs))
    assert mine == yours, words
    return mine


OPTIONS = [b"REPLACE", b"absttl", b"IDLETIME", b"FREQ", b"0", b"5", b"-1", b"256", b"x", b"9223372036854775807", b"no"]
TTLS = [b"0", b"0", b"100000", b"-1", b"x", b"9223372036854775807", b"99999999999999"]


def test_the_same_is_refused_in_the_same_order(ours: SocketServer, theirs: SocketServer, protocol: int) -> None:
    theirs.client().set("text", "5")
    payload = theirs.client().dump("text")
    assert payload is not None
    luck = random.Random(5)
    payloads = [payload, payload, payload, b"", b"x" * 9, payload[:-1] + b"x", payload[:-10] + b"\x0b" + payload[-9:]]
    for _ in range(600):
        options = [luck.choice(OPTIONS) for _ in range(luck.randrange(4))]
        ttl = luck.choice(TTLS) if b"absttl" not in options else luck.choice([*TTLS, b"1", b"1000"])
        both(ours, theirs, protocol, b"RESTORE", b"k", ttl, luck.choice(payloads), *options)
        both(ours, theirs, protocol, b"EXISTS", b"k")
        if luck.random() < 0.4:
            both(ours, theirs, protocol, b"DEL", b"k")


@pytest.mark.parametrize("count", [3, 300])
def test_sorted_sets_go_both_ways(ours: SocketServer, theirs: SocketServer, count: int) -> None:
    mine, yours = ours.client(), theirs.client()
    yours.zadd("k", {f"m{number}": number * 1.1 for number in range(count)})
    mine.restore("k", 0, yours.dump("k"))
    yours.restore("back", 0, mine.dump("k"))
    assert mine.zrange("k", 0, -1, withscores=True) == yours.zrange("back", 0, -1, withscores=True)
    assert yours.dump("back") == yours.dump("k")


def test_events_are_those_of_redis(ours: SocketServer, theirs: SocketServer) -> None:
    told = []
    for server in (ours, theirs):
        client = server.client()
        client.config_set("notify-keyspace-events", "KEAn")
        client.set("text", "5")
        payload = client.dump("text")
        listener = client.pubsub()
        listener.psubscribe("__key*")
        listener.get_message(timeout=PATIENCE_S)
        client.restore("k", 0, payload)
        client.restore("k", 100000, payload, replace=True)
        client.restore("k", 1, payload, replace=True, absttl=True)
        client.restore("k", 1, payload, absttl=True)
        client.set("end", "1")
        heard: list[Any] = []
        while not heard or heard[-1] != b"end":
            message = listener.get_message(timeout=PATIENCE_S)
            assert message is not None
            heard.append(message["data"])
        told.append(heard)
        client.config_set("notify-keyspace-events", "")
        listener.close()
    assert told[0] == told[1]


def sealed(*parts: bytes) -> bytes:
    return envelope.seal(b"".join(parts))


NODE = listpack.pack([b"a", b"5", b"", b"x" * 200])
OLD_PAGES = [ziplist([b"a", 5, -1, b"x" * 300, 1 << 40, b"y"]), ziplist([b"only"])]
OLD = {
    "list of strings": sealed(b"\x01\x03", *map(envelope.string, [b"a", b"70000", b"x" * 99])),
    "list of one ziplist": sealed(b"\x0a", envelope.string(OLD_PAGES[0])),
    "list of ziplists": sealed(b"\x0e\x02", *map(envelope.string, OLD_PAGES)),
    "list with a node of one element": sealed(
        b"\x12\x02\x01", envelope.string(b"z" * 300), b"\x02", envelope.string(NODE)
    ),
    "stream of Redis 6": sealed(
        b"\x0f\x01", envelope.string(b"\0" * 7 + b"\x05" + b"\0" * 8),
        envelope.string(listpack.pack(b"2 1 1 a 0 2 0 0 v 4 3 1 0 v 4 0 2 0 1 b w 6".split())), b"\x02\x09\x09",
        b"\x02", b"\x01g\x05\0", b"\x01", b"\0" * 7 + b"\x05" + b"\0" * 8, b"\x05" + b"\0" * 7, b"\x03",
        b"\x01\x01c", b"\x07" + b"\0" * 7, b"\x01", b"\0" * 7 + b"\x05" + b"\0" * 8, b"\x01h\x09\x09\0\0",
    ),
    "hash of a ziplist": sealed(b"\x0d", envelope.string(ziplist([b"a", 5, b"b", b"x" * 300]))),
    "hash of a zipmap": sealed(b"\x09", envelope.string(b"\x02\x01a\x01\x005\x01b\x02\x01cd?\xff")),
    "hash of an empty listpack": sealed(b"\x10", envelope.string(listpack.pack([]))),
    "nothing": b"",
    "list without elements": sealed(b"\x01\0"),
    "list of an empty ziplist": sealed(b"\x0a", envelope.string(ziplist([]))),
    "set with a member twice": sealed(b"\x02\x02\x01a\x01a"),
    "trailing bytes": sealed(b"\0\x01a", b"and more"),
    "string that reaches into the footer": sealed(b"\0\x05a"),
    "string that reaches beyond it": sealed(b"\0\x0ca"),
}  # fmt: skip


@pytest.mark.parametrize("name", OLD)
def test_payloads_of_older_servers_are_read_alike(ours: SocketServer, theirs: SocketServer, name: str) -> None:
    both(ours, theirs, 2, b"RESTORE", b"k", b"0", OLD[name])
    both(ours, theirs, 2, b"EXISTS", b"k")
    if theirs.client().exists("k"):
        assert content(ours.client(), "k") == content(theirs.client(), "k")


@pytest.mark.parametrize("sender", ["ours", "theirs"])
def test_keys_migrate_from_one_to_the_other(ours: SocketServer, theirs: SocketServer, sender: str) -> None:
    luck = random.Random(6)
    source, target = (ours, theirs) if sender == "ours" else (theirs, ours)
    here, there = source.client(), target.client()
    names = [f"key:{number}" for number in range(CONTENTS)]
    for name in names:
        fill(luck, here, name)
    names = [name for name in names if here.exists(name)]
    before = {name: here.execute_command("DEBUG", "DIGEST-VALUE", name) for name in names}
    order = "MIGRATE", "127.0.0.1", target.port, "", 0, 30_000, "COPY", "REPLACE", "KEYS", *names
    for _ in range(2):
        assert here.execute_command(*order) == b"OK"
    assert {name: there.execute_command("DEBUG", "DIGEST-VALUE", name) for name in names} == before
    assert here.migrate("127.0.0.1", target.port, names, 3, 30_000) == b"OK"
    assert here.dbsize() == 0
    assert here.migrate("127.0.0.1", target.port, names, 3, 30_000) == b"NOKEY"
    assert target.client(db=3).dbsize() == len(names)


def test_migrate_says_no_alike(ours: SocketServer, theirs: SocketServer) -> None:
    for client in (ours.client(), theirs.client()):
        client.set("key", "value")
    for rest in (
        ("nowhere.invalid", 1, "key", 0, 100),
        ("127.0.0.1", 1, "key", 0, 100),
        ("127.0.0.1", "x", "key", 0, 100),
        ("127.0.0.1", 1, "key", "x", 100),
        ("127.0.0.1", 1, "key", 0, "x"),
        ("127.0.0.1", 1, "key", 0, 100, "NONSENSE"),
        ("127.0.0.1", 1, "key", 0, 100, "COPY", "REPLACE", "AUTH"),
        ("127.0.0.1", 1, "key", 0, 100, "AUTH2", "user"),
        ("127.0.0.1", 1, "key", 0, 100, "KEYS", "other"),
        ("127.0.0.1", 1, "", 0, 100, "KEYS"),
        ("127.0.0.1", 1, "missing", 0, 100),
        ("127.0.0.1", 1, "missing", 0, "x"),
    ):
        said = []
        for server in (ours, theirs):
            try:
                said.append(server.client().execute_command("MIGRATE", *rest))
            except redis.ResponseError as refusal:
                said.append(str(refusal))
        assert said[0] == said[1], rest
