"""Random requests about lists, sets, hashes, bits and HyperLogLogs: few keys and few values, so that the requests meet.

Left out is what draws at random, but where only the number or all of the members are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

Words: TypeAlias = list[bytes]

LISTS, SETS, HASHES, TEXTS, COUNTERS = (
    [b"l1", b"l2", b"l3"],
    [b"s1", b"s2", b"i1", b"i2"],
    [b"h1", b"h2"],
    [b"b1", b"b2", b"b3"],
    [b"p1", b"p2", b"p3"],
)
OTHERS = [b"text", b"topic", b"none"]
VALUES = [b"a", b"b", b"c", b"", b"5", b"-70000", b"01", b"long" * 30]
INTEGERS = [b"0", b"1", b"-1", b"127", b"-129", b"40000", b"9223372036854775807", b"7"]
NUMBERS = [b"0", b"1", b"-1", b"2", b"-3", b"100", b"x", b"", b"9223372036854775808", b"-9223372036854775808"]
FLOATS = [b"0.1", b"-1.5", b"3", b"1e10", b"inf", b"nan", b"x", b"1e-7", b"0x10", b"123456789.125", b""]
TIMEOUTS = [b"0.001", b"-1", b"x", b"0.01", b"1e400", b"0x1p-9", b" 1"]
ENDS = [b"LEFT", b"RIGHT", b"left", b"Right", b"up"]
OFFSETS = [b"0", b"1", b"7", b"8", b"100", b"-1", b"x", b"4294967296"]
TYPES = [b"u8", b"i8", b"u1", b"i64", b"u63", b"i5", b"u64", b"i0", b"x", b""]
CURSORS = [b"0", b"0", b"0", b"x", b"-"]


DRAWING = (b"SPOP", b"SRANDMEMBER", b"HRANDFIELD")
"""Without a number they answer what nobody can foresee."""


class Requests:
    """The same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._makers = [
            *self._of_lists() * 2, *self._of_sets() * 2, *self._of_hashes() * 2, *self._of_bits(), *self._of_keys()
        ]  # fmt: skip

    def next(self) -> Words:
        words = self._random.choice(self._makers)()
        if words[0] in DRAWING:
            return words
        if self._random.random() < 0.02:
            words.insert(self._random.randint(1, len(words)), self._one(VALUES))
        if self._random.random() < 0.02 and len(words) > 1:
            del words[self._random.randrange(1, len(words))]
        return words

    def _one(self, words: Words) -> bytes:
        return self._random.choice(words)

    def _some(self, words: Words, least: int = 1, most: int = 3) -> Words:
        return self._random.choices(words, k=self._random.randint(least, most))

    def _key(self, keys: Words) -> bytes:
        """One of the kind, mostly."""
        return self._one(keys if self._random.random() < 0.93 else [*LISTS, *SETS, *HASHES, *TEXTS, *OTHERS])

    def _keys(self, keys: Words, most: int = 3) -> Words:
        return [self._key(keys) for _ in range(self._random.randint(1, most))]

    def _maybe(self, *words: bytes) -> Words:
        return list(words) if self._random.random() < 0.4 else []

    def _member(self) -> bytes:
        return self._one(VALUES if self._random.random() < 0.5 else INTEGERS)

    def _of_lists(self) -> list[Callable[[], Words]]:
        one, some, maybe = self._one, self._some, self._maybe

        def key() -> bytes:
            return self._key(LISTS)

        def counted_keys() -> Words:
            keys = self._keys(LISTS)
            count = b"%d" % len(keys) if self._random.random() < 0.9 else one(NUMBERS)
            return [count, *keys, one(ENDS), *maybe(b"COUNT", one(NUMBERS))]

        def places() -> Words:
            options = [[b"RANK", one(NUMBERS)], [b"COUNT", one(NUMBERS)], [b"MAXLEN", one(NUMBERS)], [b"rank"]]
            return [word for option in self._random.choices(options, (4, 4, 4, 1), k=2) for word in option]

        return [
            lambda: [one([b"LPUSH", b"RPUSH", b"LPUSHX", b"RPUSHX"]), key(), *some(VALUES, 1, 4)],
            lambda: [one([b"LPUSH", b"RPUSH"]), key(), *some(VALUES, 1, 60)],
            lambda: [one([b"LPOP", b"RPOP"]), key(), *maybe(one(NUMBERS))],
            lambda: [one([b"LRANGE", b"LRANGE", b"LTRIM"]), key(), one(NUMBERS), one(NUMBERS)],
            lambda: [b"LREM", key(), one(NUMBERS), one(VALUES)],
            lambda: [b"LINSERT", key(), one([b"BEFORE", b"after", b"x"]), one(VALUES), one(VALUES)],
            lambda: [b"LSET", key(), one(NUMBERS), one(VALUES)],
            lambda: [b"LPOS", key(), one(VALUES), *maybe(*places())],
            lambda: [one([b"LINDEX", b"LLEN"]), key(), *maybe(one(NUMBERS))],
            lambda: [b"LINDEX", key(), one(NUMBERS)],
            lambda: [b"LMOVE", key(), key(), one(ENDS), one(ENDS)],
            lambda: [b"RPOPLPUSH", key(), key()],
            lambda: [b"LMPOP", *counted_keys()],
            lambda: [b"BLMPOP", one(TIMEOUTS), *counted_keys()],
            lambda: [b"BLMOVE", key(), key(), one(ENDS), one(ENDS), one(TIMEOUTS)],
            lambda: [b"BRPOPLPUSH", key(), key(), one(TIMEOUTS)],
            lambda: [one([b"BLPOP", b"BRPOP"]), *self._keys(LISTS), one(TIMEOUTS)],
        ]

    def _of_sets(self) -> list[Callable[[], Words]]:
        one, maybe, member = self._one, self._maybe, self._member

        def key() -> bytes:
            return self._key(SETS)

        def members(most: int = 4) -> Words:
            draw = self._random.choice((lambda: one(INTEGERS), member))
            return [draw() for _ in range(self._random.randint(1, most))]

        def numbered() -> Words:
            first = self._random.randrange(700)
            return [b"%d" % number for number in range(first, first + self._random.choice((3, 200)))]

        def card() -> Words:
            keys = self._keys(SETS)
            count = b"%d" % len(keys) if self._random.random() < 0.9 else one(NUMBERS)
            return [count, *keys, *maybe(b"LIMIT", one(NUMBERS))]

        algebra = [b"SINTER", b"SUNION", b"SDIFF"]
        return [
            lambda: [b"SADD", key(), *members()],
            lambda: [b"SADD", key(), *members(8)],
            lambda: [one([b"SADD", b"SREM"]), key(), *numbered()],
            lambda: [b"SREM", key(), *members()],
            lambda: [one([b"SISMEMBER", b"SMISMEMBER"]), key(), member(), *maybe(member())],
            lambda: [one([b"SCARD", b"SMEMBERS"]), key()],
            lambda: [b"SMOVE", key(), key(), member()],
            lambda: [b"SPOP", key(), one([b"0", b"5000", b"-1", b"x"])],
            lambda: [b"SRANDMEMBER", key(), one([b"0", b"5000", b"-7", b"x", b"-9223372036854775808"])],
            lambda: [one(algebra), *self._keys(SETS)],
            lambda: [one(algebra) + b"STORE", key(), *self._keys(SETS)],
            lambda: [b"SINTERCARD", *card()],
            lambda: [
                b"SSCAN",
                key(),
                one(CURSORS),
                b"COUNT",
                one([b"5000", b"5000", b"0", b"x"]),
                *maybe(b"MATCH", b"*1"),
            ],
        ]

    def _of_hashes(self) -> list[Callable[[], Words]]:
        one, some, maybe = self._one, self._some, self._maybe
        fields = [b"f%d" % number for number in range(6)] + [b"", b"7", b"long" * 30]

        def key() -> bytes:
            return self._key(HASHES)

        def pairs(most: int = 3) -> Words:
            names = some(fields, 1, most)
            return [word for name in names for word in (name, one([*VALUES[:-1], *INTEGERS, *FLOATS]))]

        def many() -> Words:
            first = self._random.randrange(600)
            names = [b"n%d" % number for number in range(first, first + self._random.choice((3, 300)))]
            return [word for name in names for word in (name, b"v")]

        return [
            lambda: [one([b"HSET", b"HSET", b"HMSET"]), key(), *pairs()],
            lambda: [b"HSET", key(), *pairs(6)],
            lambda: [b"HSET", key(), *(many() if self._random.random() < 0.3 else pairs())],
            lambda: [b"HSETNX", key(), one(fields), one(VALUES)],
            lambda: [one([b"HGET", b"HEXISTS", b"HSTRLEN"]), key(), one(fields)],
            lambda: [b"HMGET", key(), *some(fields)],
            lambda: [b"HDEL", key(), *some(fields)],
            lambda: [b"HDEL", key(), *many()[::2]],
            lambda: [one([b"HGETALL", b"HKEYS", b"HVALS", b"HLEN"]), key()],
            lambda: [b"HINCRBY", key(), one(fields), one([*NUMBERS, *INTEGERS])],
            lambda: [b"HINCRBYFLOAT", key(), one(fields), one(FLOATS)],
            lambda: [b"HINCRBYFLOAT", key(), one(fields), b"%.9f" % self._random.uniform(-1e6, 1e6)],
            lambda: [b"HRANDFIELD", key(), one([b"0", b"5000", b"-7", b"x"]), *maybe(one([b"WITHVALUES", b"x"]))],
            lambda: [
                b"HSCAN",
                key(),
                one(CURSORS),
                b"COUNT",
                one([b"5000", b"5000", b"0", b"x"]),
                *maybe(b"MATCH", b"*1"),
            ],
        ]

    def _of_bits(self) -> list[Callable[[], Words]]:
        one, maybe = self._one, self._maybe

        def key() -> bytes:
            return self._key(TEXTS)

        def step() -> Words:
            kind, offset = (
                one(TYPES[:6] if self._random.random() < 0.9 else TYPES),
                one([*OFFSETS[:5], b"#0", b"#3", b"#x"]),
            )
            word = one([b"GET", b"SET", b"INCRBY", b"OVERFLOW"])
            if word == b"OVERFLOW":
                return [
                    word,
                    one(
                        [b"WRAP", b"SAT", b"fail", b"x"] if self._random.random() < 0.1 else [b"WRAP", b"SAT", b"FAIL"]
                    ),
                ]
            return [word, kind, offset] + (
                [] if word == b"GET" else [one([*INTEGERS, b"-9223372036854775808", b"255"])]
            )

        return [
            lambda: [b"SETBIT", key(), one(OFFSETS[:-1]), one([b"0", b"1", b"1", b"2"])],
            lambda: [b"GETBIT", key(), one(OFFSETS)],
            lambda: [b"SET", key(), one([*VALUES, b"\xff\xf0\x00", b"\x00\xff\xf0", b"\0\0", b"\xff\xff"])],
            lambda: [b"BITCOUNT", key(), *maybe(one(NUMBERS), one(NUMBERS), *maybe(one([b"BIT", b"byte", b"x"])))],
            lambda: [
                b"BITPOS",
                key(),
                one([b"0", b"1", b"2"]),
                *maybe(one(NUMBERS), *maybe(one(NUMBERS), *maybe(b"bit"))),
            ],
            lambda: [b"BITOP", one([b"AND", b"or", b"XOR", b"nand"]), key(), *self._keys(TEXTS)],
            lambda: [b"BITOP", b"NOT", key(), key()],
            lambda: [b"BITFIELD", key(), *[word for _ in range(3) for word in step()]],
            lambda: [b"BITFIELD_RO", key(), *[word for _ in range(2) for word in step()]],
            lambda: [
                b"LCS",
                key(),
                key(),
                *maybe(one([b"LEN", b"IDX", b"x"])),
                *maybe(b"WITHMATCHLEN", b"IDX", b"MINMATCHLEN", one(NUMBERS)),
            ],
            lambda: [
                b"PFADD",
                self._key(COUNTERS),
                *[b"%d" % self._random.randrange(3000) for _ in range(self._random.choice((0, 1, 3, 50)))],
            ],
            lambda: [b"PFADD", self._key(COUNTERS), *[b"%d" % self._random.getrandbits(40) for _ in range(60)]],
            lambda: [b"PFCOUNT", *self._keys(COUNTERS)],
            lambda: [b"PFMERGE", *self._keys(COUNTERS)],
            lambda: [b"PFDEBUG", one([b"ENCODING", b"decode", b"x"]), self._key(COUNTERS)],
        ]

    def _of_keys(self) -> list[Callable[[], Words]]:
        every = [*LISTS, *SETS, *HASHES, *TEXTS, *COUNTERS, *OTHERS]
        one, some = self._one, self._some
        return [
            lambda: [one([b"RENAME", b"COPY"]), one(every), one(every), *self._maybe(b"REPLACE")],
            lambda: [one([b"TYPE", b"EXISTS", b"PERSIST", b"DEL", b"UNLINK"]), one(every)],
            lambda: [b"OBJECT", b"ENCODING", one(every)],
            lambda: [b"DEBUG", b"DIGEST-VALUE", *some(every)],
            lambda: [b"EXPIRE", one(every), b"50000000"],
            lambda: [one([b"MULTI", b"EXEC", b"EXEC", b"EXEC"])],
        ]
