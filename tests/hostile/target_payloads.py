"""RESTORE of dumps of every type and kind, damaged, with the right sum. What is refused changes nothing; what is taken
is whole: it can be read, dumped, restored again, changed and removed."""

from __future__ import annotations

from pathlib import Path
from random import Random

from damage import damaged
from victim import Found, OfServer, Victim
from ziplists import ziplist

from rlite_pubsub.protocol.rdb import collections, envelope, hashes, listpack, sorted_sets, stream
from rlite_pubsub.protocol.rdb.stream import ConsumerImage, GroupImage, StreamImage

BAD = b"Bad data format"
TOKENS = [
    b"\0", b"\x01", b"\x3f", b"\x40\0", b"\x7f\xff", b"\x80\0\0\0\0", b"\x80\xff\xff\xff\xff", b"\x80\x7f\xff\xff\xff",
    b"\x81" + b"\xff" * 8, b"\x81\x7f" + b"\xff" * 7, b"\x81" + bytes(8), b"\xc0\x7f", b"\xc0\x80", b"\xc1\xff\x7f",
    b"\xc2\0\0\0\x80", b"\xc3", b"\xc3\x01\x01\0", b"\xc4", b"\xff", b"\xfe", b"\xfd", b"\xf0", b"\xf1\0\x80", b"\xf4",
    b"\xe0\0\0", b"\xf2\xff\xff\x7f", b"\x10", bytes(16), b"\xff" * 16, b"nan", b"inf", b"\x03nan", b"\xff\xff",
]  # fmt: skip
READ = {
    b"string": [("STRLEN",), ("GETRANGE", 0, 100), ("BITCOUNT",), ("PFCOUNT",)],
    b"list": [("LLEN",), ("LRANGE", 0, -1), ("LINDEX", -1), ("LPOS", "a", "COUNT", 0)],
    b"set": [("SCARD",), ("SMEMBERS",), ("SSCAN", 0, "COUNT", 1000), ("SRANDMEMBER", -5)],
    b"hash": [("HLEN",), ("HGETALL",), ("HSCAN", 0, "COUNT", 1000), ("HRANDFIELD", -5, "WITHVALUES")],
    b"zset": [
        ("ZCARD",), ("ZRANGE", 0, -1, "WITHSCORES"), ("ZRANGE", "-inf", "+inf", "BYSCORE", "REV"), ("ZRANDMEMBER", -5),
        ("ZRANGE", "-", "+", "BYLEX"), ("ZSCAN", 0, "COUNT", 1000), ("ZCOUNT", "-inf", "(0"),
    ],
    b"stream": [
        ("XLEN",), ("XRANGE", "-", "+"), ("XREVRANGE", "+", "-", "COUNT", 3), ("XPENDING", "g"),
        ("XPENDING", "g", "-", "+", 9),
        ("XPENDING", "g", "IDLE", 1, "-", "+", 9, "c"),
    ],
}  # fmt: skip
COUNTS = {b"list": 0, b"set": 0, b"hash": 0, b"zset": 0, b"stream": 0}
CHANGE = {
    b"string": [("APPEND", "x"), ("SETRANGE", 5, "y"), ("INCR",)],
    b"list": [("LPUSH", "x"), ("LSET", 0, "y"), ("LINSERT", "BEFORE", "a", "z"), ("LPOP",), ("RPOP",)],
    b"set": [("SADD", "x", 1, 2), ("SREM", "a"), ("SPOP", 2)],
    b"hash": [("HSET", "x", "y"), ("HINCRBY", "x2", 1), ("HEXPIRE", 100, "FIELDS", 1, "a"), ("HDEL", "a")],
    b"zset": [("ZADD", 1, "x"), ("ZINCRBY", "inf", "a"), ("ZREM", "b"), ("ZREMRANGEBYRANK", 0, 0), ("ZPOPMAX",)],
    b"stream": [
        ("XADD", "*", "f", "v"), ("XDEL", "1-1"), ("XTRIM", "MAXLEN", 1), ("XGROUP", "DELCONSUMER", "g", "c"),
        ("XAUTOCLAIM", "g", "d", 0, "0", "COUNT", 3), ("XCLAIM", "g", "d", 0, "2-1", "3-0", "FORCE"), ("XSETID", "9-9"),
    ],
}  # fmt: skip


class Payloads(OfServer):
    """Attacks a server of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Victim(folder))
        self.taken = 0

    def attack(self, chance: Random) -> None:
        body = damaged(chance, chance.choice(BODIES), TOKENS)
        payload = envelope.seal(body, chance.choice((10, 10, 10, 6, 11, 12)))
        what = f"RESTORE {payload[:400].hex()}"
        self.victim.watch(what, lambda: self._restore(payload))

    def _restore(self, payload: bytes) -> None:
        ask, control = self.victim.ask, self.victim.control
        control("SET", "k", "before")
        [reply] = ask([("RESTORE", "k", 0, payload, "REPLACE")])
        if reply != b"OK":
            if BAD not in str(reply).encode() or control("GET", "k") != b"before":
                raise Found(f"{reply!r} to {payload.hex()}")
            return
        self.taken += 1
        kind = control("TYPE", "k")
        if not isinstance(kind, bytes) or kind not in READ:
            raise Found(f"there is {kind!r} after {payload.hex()}")
        replies = ask([(name, "k", *rest) for name, *rest in READ[kind]])
        if kind in COUNTS and not _counts_right(kind, replies):
            raise Found(f"{replies[:2]!r} of {payload.hex()}")
        self._restore_again(kind, payload)
        changes = [
            (name, rest[0], "k", *rest[1:]) if name == "XGROUP" else (name, "k", *rest) for name, *rest in CHANGE[kind]
        ]
        ask(changes)
        ask([("XINFO", "STREAM", "k", "FULL"), ("XREADGROUP", "GROUP", "g", "e", "COUNT", 5, "STREAMS", "k", ">")])
        self._restore_again(control("TYPE", "k"), payload)
        if control("DEL", "k", "k2") == 0 and control("DBSIZE") != 0:
            raise Found(f"something is left of {payload.hex()}")

    def _restore_again(self, kind: object, payload: bytes) -> None:
        if kind == b"none":
            return
        control = self.victim.control
        dump = control("DUMP", "k")
        if dump is None and kind == b"hash":
            return  # its fields are over their time
        if not isinstance(dump, bytes):
            raise Found(f"{dump!r} to DUMP of {payload.hex()}")
        again = control("RESTORE", "k2", 0, dump, "REPLACE")
        if again != b"OK" and not (kind == b"hash" and control("EXISTS", "k") == 0):
            raise Found(f"{again!r} to the dump of what was restored from {payload.hex()}")
        if kind != b"hash":  # fields may have expired in between
            one, other = control("DEBUG", "DIGEST-VALUE", "k"), control("DEBUG", "DIGEST-VALUE", "k2")
            if one != other:
                raise Found(f"restored, dumped and restored it is another: {payload.hex()}")


def _counts_right(kind: bytes, replies: list[object]) -> bool:
    count, everything = replies[0], replies[1]
    if not isinstance(count, int) or not isinstance(everything, list):
        return False
    if kind == b"hash":
        return len(everything) <= 2 * count  # those over their time are counted until they go
    return len(everything) == (2 * count if kind == b"zset" else count)


def _strings(*words: bytes) -> bytes:
    return b"".join(map(envelope.string, words))


def _packed(text: bytes) -> bytes:
    """As LZF, if only as it stands."""
    packed = b"".join(bytes((len(text[at : at + 32]) - 1,)) + text[at : at + 32] for at in range(0, len(text), 32))
    return b"\xc3" + envelope.length(len(packed)) + envelope.length(len(text)) + packed


def _stream(count: int) -> bytes:
    entries = [
        ((1 + number // 3, number % 3), [b"f", b"v%d" % number, b"g", b"7"][: 2 + number % 3 // 2 * 2])
        for number in range(count)
    ]
    last = entries[-1][0] if entries else (5, 5)
    pending = {each: (1_700_000_000_000, number) for number, (each, _) in enumerate(entries[:4], 1)}
    ids = list(pending)
    group = GroupImage(
        b"g", last, count, pending, [ConsumerImage(b"c", 1_700_000_000_000, ids[:3]), ConsumerImage(b"d", 5, ids[3:])]
    )
    first = entries[0][0] if entries else (0, 0)
    return stream.pack_stream(
        StreamImage(entries, count, last, first, (0, 0), count, [group] if entries else []), (4096, 4)
    )


_WORDS = [b"a", b"1", b"b", b"-300", b"field", b"70000", b"x" * 70, b"9223372036854775807"]
_SCORED = [(b"m", float("-inf")), (b"a", -1.5), (b"b", 0.0), (b"c", 3.0), (b"d" * 70, float("inf"))]
BODIES = [
    b"\0" + envelope.string(b"hello"), b"\0" + envelope.string(b"12345"), b"\0" + _packed(b"abc" * 40),
    b"\0\xc3\x04\x40\xc8\0a\xe0\xbf\0"[:8] + b"\xbd\0",
    collections.pack_list(_WORDS), b"\x01" + envelope.length(8) + _strings(*_WORDS),
    b"\x0a" + envelope.string(ziplist([b"a", 1, 300, b"x" * 70, -5])),
    b"\x0e\x02" + envelope.string(ziplist([b"a", 1])) + envelope.string(ziplist([70_000, 1 << 40])),
    b"\x12\x02\x01" + envelope.string(b"plain") + b"\x02" + _packed(listpack.pack(_WORDS)),
    collections.pack_set(_WORDS), b"\x0b" + envelope.string(b"\x04\0\0\0\x03\0\0\0\x01\0\0\0\x02\0\0\0\0\0\x01\0"),
    b"\x14" + envelope.string(listpack.pack(_WORDS)), collections.pack_intset([b"-5", b"1", b"70000"]),
    hashes.pack_small(_WORDS), hashes.pack_large(_WORDS), b"\x0d" + envelope.string(ziplist([b"a", 1, b"b", b"x" * 9])),
    b"\x09" + envelope.string(b"\x02\x01a\x01\0b\x02cd\x03\x01efgz\xff"),
    hashes.pack_expiring([(b"a", b"1", 0), (b"b", b"2", 4_000_000_000_000), (b"c", b"3", 4_000_000_000_999)]),
    b"\x19" + envelope.milliseconds(4_000_000_000_000)
    + envelope.string(listpack.pack([b"a", b"1", b"4000000000000", b"b", b"2", b"0"])),
    sorted_sets.pack_small(_SCORED), sorted_sets.pack_large(_SCORED),
    b"\x03\x02" + envelope.string(b"a") + b"\x031.5" + envelope.string(b"b") + b"\xfe",
    b"\x0c" + envelope.string(ziplist([b"a", 1, b"b", b"2.5"])),
    _stream(0), _stream(1), _stream(10), _stream(10), _stream(10),
    b"\x0f" + _stream(10)[1:], b"\x15" + _stream(10)[1:],
]  # fmt: skip
"""Values of each kind, without what stands behind them."""
