"""Random requests about topics without groups: few keys and ids, so that they meet each other; now and then nonsense.

Nodes are kept small by CONFIG SET, and the sizes of values lie around the steps in which a listpack counts, so that
approximate trims and `radix-tree-keys` tell whether ours has the nodes of redis-server.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Words = list[bytes]
Id = tuple[int, int]

KEYS, KEY_WEIGHTS = (b"a", b"b", b"copy", b"text", b"none"), (60, 30, 3, 1, 2)
NONSENSE_IDS = (
    b"x", b"1-", b"-1", b"18446744073709551615-18446744073709551616", b"0-0", b"01-1", b"1-*", b"+", b"-", b"$", b">",
    b"99999999999999999999-1", b" 3-1", b"(3-1", b"1-1-1", b"", b"0" * 130 + b"-1", b"(", b"1--5", b"1--05",
    b"1-2\x003",
)  # fmt: skip
NONSENSE_NUMBERS = (b"-1", b"x", b"", b"9223372036854775808", b" 1", b"1.5", b"01")
VALUES = (
    b"", b"0", b"127", b"128", b"-1", b"4095", b"4096", b"-4097", b"32768", b"-8388608", b"8388608", b"2147483648",
    b"9223372036854775807", b"9223372036854775808", b"-0", b"+1", b"01", b"a\r\nb\x00\xff", b"v" * 63, b"v" * 64,
    b"v" * 125, b"v" * 126, b"v" * 300,
)  # fmt: skip
STEPS = ((0, 1), (0, 1), (1, 0), (2, 1), (200, 0), (5000, 3), (40_000, 0))


class Requests:
    """An endless source of them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._added: dict[bytes, list[Id]] = {key: [(0, 1)] for key in KEYS}
        makers: dict[Callable[[], Words], float] = {
            self._xadd: 45, self._xtrim: 8, self._xdel: 12, self._xrange: 10, self._xread: 8, self._xinfo: 7,
            self._xlen: 1, self._xsetid: 1, self._del: 0.3, self._copy: 0.5, self._configure: 0.8,
        }  # fmt: skip
        self._makers, self._weights = list(makers), list(makers.values())

    def next(self) -> Words:
        return self._random.choices(self._makers, self._weights)[0]()

    # -- words

    def _rarely(self) -> bool:
        return self._random.random() < 0.02

    def _key(self) -> bytes:
        return self._random.choices(KEYS, KEY_WEIGHTS)[0]

    def _id(self, key: bytes) -> bytes:
        if self._rarely():
            return self._random.choice(NONSENSE_IDS)
        ms, seq = self._random.choice(self._added[key][-60:])
        return b"%d" % ms if self._rarely() else b"%d-%d" % (ms, seq + self._random.choice((0, 0, 0, 1)))

    def _bound(self, key: bytes) -> bytes:
        return self._random.choice((b"-", b"+", self._id(key), self._id(key), b"(" + self._id(key)))

    def _number(self, *usual: int) -> bytes:
        return self._random.choice(NONSENSE_NUMBERS) if self._rarely() else b"%d" % self._random.choice(usual)

    def _maybe(self, probability: float, *words: bytes) -> Words:
        return list(words) if self._random.random() < probability else []

    def _fields(self) -> Words:
        count = self._random.choice((1, 1, 1, 2, 2, 5))
        names = [b"a", b"b", b"c", b"d", b"e"][:count]
        if self._random.random() < 0.3:
            names = self._random.choices(VALUES, k=count)
        fields = [word for name in names for word in (name, self._random.choice(VALUES))]
        return fields[:-1] if self._rarely() else fields

    def _trimming(self, key: bytes) -> Words:
        operator = self._random.choice(([b"~"], [b"~"], [b"="], []))
        if self._random.random() < 0.5:
            words = [b"MAXLEN", *operator, self._number(0, 1, 3, 10, 20, 30, 60)]
        else:
            words = [b"MINID", *operator, self._id(key)]
        if (operator == [b"~"] and self._random.random() < 0.4) or self._rarely():
            words += [b"LIMIT", self._number(0, 1, 3, 5, 10, 20, 100)]
        return words

    # -- requests

    def _xadd(self) -> Words:
        key = self._key()
        options = self._maybe(0.1, b"NOMKSTREAM")
        if self._random.random() < 0.3:
            options += self._trimming(key)
        if self._rarely():
            return [b"XADD", key, *options, self._random.choice((*NONSENSE_IDS, b"LIMIT")), *self._fields()]
        (ms, seq), step = self._added[key][-1], self._random.choice(STEPS)
        entry_id = (ms, seq + 1) if step[0] == 0 else (ms + step[0], step[1])
        self._added[key].append(entry_id)
        text = b"%d-*" % entry_id[0] if self._rarely() else b"%d-%d" % entry_id
        return [b"XADD", key, *options, text, *self._fields()]

    def _xtrim(self) -> Words:
        key = self._key()
        return [b"XTRIM", key, *self._trimming(key), *self._maybe(0.01, b"MAXLEN", b"1")]

    def _xdel(self) -> Words:
        key = self._key()
        if self._random.random() < 0.3:
            start = self._random.randrange(max(len(self._added[key]) - 40, 1))
            return [b"XDEL", key, *[b"%d-%d" % entry_id for entry_id in self._added[key][start : start + 20]]]
        return [b"XDEL", key, *[self._id(key) for _ in range(self._random.choice((1, 1, 3, 10)))]]

    def _xrange(self) -> Words:
        key = self._key()
        count = self._maybe(0.4, b"COUNT", self._number(0, 1, 5, 100))
        if self._random.random() < 0.5:
            return [b"XRANGE", key, self._bound(key), self._bound(key), *count]
        return [b"XREVRANGE", key, self._bound(key), self._bound(key), *count, *self._maybe(0.01, b"COUNT")]

    def _xread(self) -> Words:
        keys = [self._key() for _ in range(self._random.choice((1, 1, 2, 3)))]
        ids = [b"$" if self._rarely() else self._id(key) for key in keys]
        options = self._maybe(0.5, b"COUNT", self._number(0, 1, 3)) + self._maybe(0.02, b"BLOCK", self._number(1))
        options += self._maybe(0.01, b"NOACK") + self._maybe(0.01, b"GROUP", b"g", b"c")
        words = [b"XREAD", *options, b"STREAMS", *keys, *ids]
        return [b"0" if word == b"+" else word for word in words[: -1 if self._rarely() else None]]

    def _xinfo(self) -> Words:
        full = self._maybe(0.5, b"FULL") + self._maybe(0.2, b"COUNT", self._number(0, 1, 50))
        return [b"XINFO", b"STREAM", self._key(), *full]

    def _xlen(self) -> Words:
        return [b"XLEN", self._key()]

    def _xsetid(self) -> Words:
        key = self._key()
        options = self._maybe(0.4, b"ENTRIESADDED", self._number(0, 100, 1000))
        return [b"XSETID", key, self._id(key), *options, *self._maybe(0.4, b"MAXDELETEDID", self._id(key))]

    def _del(self) -> Words:
        return [b"DEL", self._random.choice(KEYS[:3])]

    def _copy(self) -> Words:
        self._added[b"copy"] = list(self._added[b"a"])
        return [b"COPY", b"a", b"copy", b"REPLACE"]

    def _configure(self) -> Words:
        if self._random.random() < 0.7:
            setting, values = b"stream-node-max-entries", (b"0", b"1", b"3", b"10", b"130")
        else:
            setting, values = b"stream-node-max-bytes", (b"0", b"100", b"300", b"4096")
        return [b"CONFIG", b"SET", setting, self._random.choice(values)]
