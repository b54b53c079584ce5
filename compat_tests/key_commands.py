"""Random requests about strings and keys: few keys and few values, so that the requests meet each other.

Left out is what two servers cannot agree on: the order of names, idle times, how often a value is referred to inside a
transaction; and times to live that are about to end, which would be noticed sooner by the one than by the other.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

Words: TypeAlias = list[bytes]

KEYS = [b"a", b"b", b"c", b"d", b"e"]
VALUES = [
    b"1", b"-5", b"10", b"hello", b"", b"3.5", b"9223372036854775807", b"-9223372036854775808", b"01", b" 1", b"1e5",
    b"x" * 50, b"abc\0def", b"inf", b"nan", b"0x10", b"5.0e3", b"-0", b"1.", b".5", b"+3", b"9999", b"10000", b"0.1",
    b"12345678901234567890", b"1e400", b"1e-400", b"-1e4000", b"1e5000",
]  # fmt: skip
NUMBERS = [
    b"1", b"2", b"-1", b"0", b"100", b"5", b"-100", b"9223372036854775807", b"-9223372036854775808", b"x", b"1.5", b"",
    b"3", b"10", b"99999999999999",
]  # fmt: skip
OFFSETS = [b"0", b"3", b"60", b"-1", b"x", b"600000000"]
TIMES = [b"50000000", b"80000000", b"-1", b"0", b"x", b"9223372036854775807", b"9223372036854775", b"1000000000"]
DATES = [b"4000000000", b"1", b"-5", b"4000000000000", b"9223372036854775807", b"x"]
DATABASES = [b"0", b"1", b"2", b"15", b"16", b"-1", b"x", b"3000000000", b"9999999999999999999999"]
SHORT = [b"EX", b"PX"]
LONG = [b"EXAT", b"PXAT"]
TRACKING: list[Words] = [
    [b"ON"], [b"OFF"], [b"ON", b"NOLOOP"], [b"ON", b"BCAST"], [b"ON", b"BCAST", b"NOLOOP", b"PREFIX", b"a"],
    [b"ON", b"OPTIN"], [b"ON", b"OPTOUT"],
]  # fmt: skip


class Requests:
    """The same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._makers = self._all()

    def next(self) -> Words:
        return self._random.choice(self._makers)()

    def connection(self) -> int:
        """Which of two says it."""
        return self._random.randrange(2)

    def _pick(self, *alternatives: Words) -> Words:
        return self._random.choice(alternatives)

    def _one(self, words: Words) -> bytes:
        return self._random.choice(words)

    def _key(self) -> bytes:
        return self._one(KEYS)

    def _keys(self, most: int = 3) -> Words:
        return self._random.choices(KEYS, k=self._random.randint(1, most))

    def _pairs(self) -> Words:
        return [word for key in self._keys() for word in (key, self._one(VALUES))]

    def _options(self, words: Words) -> Words:
        chosen: Words = []
        for word in self._random.choices(words, k=self._random.choice((0, 0, 1, 1, 2, 3))):
            chosen.append(self._one([word, word.lower(), word.capitalize()]))
            if word in SHORT + LONG and self._random.random() < 0.95:
                chosen.append(self._one(TIMES if word in SHORT else DATES))
        return chosen

    def _conditions(self) -> Words:
        many = self._random.choice((0, 0, 1, 2))
        return self._random.choices([b"nx", b"XX", b"Gt", b"lt", b"what"], (4, 4, 4, 4, 1), k=many)

    def _all(self) -> list[Callable[[], Words]]:
        one, key, keys, pick = self._one, self._key, self._keys, self._pick
        return [*self._of_strings(), *self._of_sessions()] + [
            lambda: [b"DEL", *keys()],
            lambda: [b"UNLINK", *keys()],
            lambda: [b"EXISTS", *keys()],
            lambda: [b"TOUCH", *keys()],
            lambda: [b"TYPE", key()],
            lambda: [b"RENAME", key(), key()],
            lambda: [b"RENAMENX", key(), key()],
            lambda: [b"MOVE", key(), one(DATABASES)],
            lambda: [b"COPY", key(), key(), *pick([], [b"DB", one(DATABASES)], [b"REPLACE"], [b"DB"], [b"what"])],
            lambda: [b"COPY", key(), key(), b"replace", b"db", one(DATABASES)],
            lambda: [b"EXPIRE", key(), one(TIMES), *self._conditions()],
            lambda: [b"PEXPIRE", key(), one(TIMES), *self._conditions()],
            lambda: [b"EXPIREAT", key(), one(DATES), *self._conditions()],
            lambda: [b"PEXPIREAT", key(), one(DATES), *self._conditions()],
            lambda: [b"PERSIST", key()],
            lambda: [one([b"EXPIRETIME", b"PEXPIRETIME", b"TTL", b"PTTL"]), key()],
            lambda: [b"OBJECT", one([b"ENCODING", b"encoding", b"FREQ", b"HELP", b"what"]), key()],
            lambda: [b"DBSIZE"],
            lambda: pick([b"FLUSHDB"], [b"FLUSHDB", b"sync"], [b"FLUSHALL"], [b"FLUSHALL", b"what"], [b"GET", b"a"]),
            lambda: [b"SWAPDB", one(DATABASES), one(DATABASES)],
            lambda: [b"SCAN", one([b"x", b"-", b"0 ", b"18446744073709551616"])],
            lambda: [b"SCAN", b"0", b"TYPE", one([b"what", b"hash"]), b"COUNT", one([b"100", b"0", b"x"])],
            lambda: [b"DEBUG", b"DIGEST-VALUE", *keys()],
            lambda: [one([b"GET", b"EXPIRE", b"DEL", b"COPY"])],
        ]

    def _of_strings(self) -> list[Callable[[], Words]]:
        one, key = self._one, self._key
        return [
            lambda: [b"GET", key()],
            lambda: [b"SET", key(), one(VALUES)],
            lambda: [b"SET", key(), one(VALUES)]
            + self._options([b"NX", b"XX", b"GET", b"KEEPTTL", b"PERSIST", b"what", *SHORT, *LONG]),
            lambda: [b"SETNX", key(), one(VALUES)],
            lambda: [one([b"SETEX", b"PSETEX"]), key(), one(TIMES), one(VALUES)],
            lambda: [b"GETSET", key(), one(VALUES)],
            lambda: [b"GETDEL", key()],
            lambda: [b"GETEX", key(), *self._options([b"PERSIST", b"GET", b"KEEPTTL", *SHORT, *LONG])],
            lambda: [b"MSET", *self._pairs()],
            lambda: [b"MSETNX", *self._pairs()],
            lambda: [b"MSET", *self._pairs(), key()],
            lambda: [one([b"INCR", b"DECR"]), key()],
            lambda: [one([b"INCRBY", b"DECRBY"]), key(), one(NUMBERS)],
            lambda: [b"INCRBYFLOAT", key(), one(VALUES)],
            lambda: [b"INCRBYFLOAT", key(), b"%.3f" % self._random.uniform(-1000, 1000)],
            lambda: [b"APPEND", key(), one(VALUES)],
            lambda: [b"STRLEN", key()],
            lambda: [one([b"GETRANGE", b"SUBSTR"]), key(), one(NUMBERS), one(NUMBERS)],
            lambda: [b"SETRANGE", key(), one(OFFSETS), one(VALUES)],
            lambda: [b"XADD", one(KEYS[2:]), one([b"5-5", b"6-6"]), b"field", one(VALUES)],
        ]

    def _of_sessions(self) -> list[Callable[[], Words]]:
        one, keys = self._one, self._keys
        return [
            lambda: [b"SELECT", one([b"0", b"0", b"1", b"x"])],
            lambda: [b"MULTI"],
            lambda: [b"EXEC"],
            lambda: [b"EXEC"],
            lambda: [b"DISCARD"],
            lambda: [b"WATCH", *keys()],
            lambda: [b"UNWATCH"],
            lambda: [b"CLIENT", b"TRACKING", *self._random.choice(TRACKING)],
            lambda: [b"CLIENT", b"CACHING", one([b"yes", b"no"])],
        ]
