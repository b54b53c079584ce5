"""Random requests about groups of topics: few names and ids, so that they meet each other; now and then nonsense.

A `TIMED` request's reply tells of times, which two servers cannot have in common.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Words = list[bytes]

KEYS, KEY_WEIGHTS = (b"a", b"b", b"text", b"none"), (60, 30, 1, 1)
GROUPS, GROUP_WEIGHTS = (b"g", b"h", b"no\nsuch\0group"), (60, 30, 1)
CONSUMERS = (b"c1", b"c2", b"c3")
NONSENSE_IDS = (
    b"x", b"1-", b"-1", b"18446744073709551615-18446744073709551615", b"0-0", b"01-1", b"1-*", b"+", b"-", b"$", b">",
    b"99999999999999999999-1", b"1-99999999999999999999", b" 3-1", b"(3-1", b"1-1-1", b"", b"0" * 130 + b"-1",
)  # fmt: skip
COUNTS = (b"1", b"2", b"3", b"5", b"100")
NONSENSE_NUMBERS = (b"0", b"-1", b"x", b"", b"9223372036854775808", b" 1", b"1.5")
TIMED = frozenset((b"XPENDING", b"XINFO"))


class Requests:
    """An endless source of them."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._added = [b"0-1"]  # ids that were added lately, somewhere: the others name these
        makers: dict[Callable[[], Words], float] = {
            self._xadd: 20, self._xdel: 2, self._xtrim: 1, self._del: 0.2, self._xsetid: 0.5, self._create: 4,
            self._setid: 1, self._destroy: 0.3, self._createconsumer: 2, self._delconsumer: 0.5, self._xreadgroup: 18,
            self._xack: 12, self._xclaim: 8, self._xautoclaim: 6, self._xpending: 14, self._xinfo: 8, self._copy: 0.3,
        }  # fmt: skip
        self._makers, self._weights = list(makers), list(makers.values())

    def next(self) -> Words:
        return self._random.choices(self._makers, self._weights)[0]()

    # -- words

    def _rarely(self) -> bool:
        return self._random.random() < 0.02

    def _key(self) -> bytes:
        return self._random.choices(KEYS, KEY_WEIGHTS)[0]

    def _of_group(self) -> Words:
        return [self._key(), self._random.choices(GROUPS, GROUP_WEIGHTS)[0]]

    def _consumer(self) -> bytes:
        return self._random.choice(CONSUMERS)

    def _id(self) -> bytes:
        if self._rarely():
            return self._random.choice(NONSENSE_IDS)
        if self._rarely():
            return b"%d" % len(self._added)
        return self._random.choice(self._added[-12:])

    def _ids(self) -> Words:
        return [self._id() for _ in range(self._random.choice((1, 1, 2, 3, 8)))]

    def _bound(self) -> bytes:
        return self._random.choice((b"-", b"+", self._id(), self._id(), b"(" + self._id()))

    def _number(self, *usual: bytes) -> bytes:
        return self._random.choice(NONSENSE_NUMBERS if self._rarely() else usual)

    def _maybe(self, probability: float, *words: bytes) -> Words:
        return list(words) if self._random.random() < probability else []

    def _options(self, *options: Words) -> Words:
        chosen = [option for option in options if option]
        self._random.shuffle(chosen)
        return [word for option in chosen for word in option] + self._maybe(0.01, b"NONSENSE")

    # -- requests

    def _xadd(self) -> Words:
        trim = self._maybe(0.1, b"MAXLEN", b"%d" % self._random.randint(3, 12))
        self._added.append(b"%d-%d" % divmod(len(self._added), 3))
        return [b"XADD", self._key(), *trim, self._added[-1], b"field", b"%d" % self._random.randint(0, 99)]

    def _xdel(self) -> Words:
        return [b"XDEL", self._key(), *self._ids()]

    def _xtrim(self) -> Words:
        return [b"XTRIM", self._key(), b"MAXLEN", b"%d" % self._random.randint(0, 8)]

    def _del(self) -> Words:
        return [b"DEL", self._random.choice((b"a", b"b"))]

    def _copy(self) -> Words:
        return [self._random.choice((b"COPY", b"RENAME")), *self._random.choice(([b"a", b"b"], [b"b", b"a"]))]

    def _xsetid(self) -> Words:
        counts = [b"ENTRIESADDED", b"%d" % self._random.randint(0, 60), b"MAXDELETEDID", self._id()]
        return [b"XSETID", self._key(), self._id(), *self._maybe(0.5, *counts)]

    def _entries_read(self) -> Words:
        return self._maybe(0.3, b"ENTRIESREAD", self._number(b"0", b"5", b"17", b"-1", b"-2"))

    def _create(self) -> Words:
        start = self._random.choice((b"0", b"0", b"$", self._id()))
        return [b"XGROUP", b"CREATE", *self._of_group(), start] + self._options(
            self._maybe(0.6, b"MKSTREAM"), self._entries_read()
        )

    def _setid(self) -> Words:
        start = self._random.choice((b"0", b"$", b"-", b"+", self._id(), self._id()))
        return [b"XGROUP", b"SETID", *self._of_group(), start, *self._options(self._entries_read())]

    def _destroy(self) -> Words:
        return [b"XGROUP", b"DESTROY", *self._of_group()]

    def _createconsumer(self) -> Words:
        return [b"XGROUP", b"CREATECONSUMER", *self._of_group(), self._consumer()]

    def _delconsumer(self) -> Words:
        return [b"XGROUP", b"DELCONSUMER", *self._of_group(), self._consumer()]

    def _xreadgroup(self) -> Words:
        keys = [self._key() for _ in range(self._random.choice((1, 1, 1, 2)))]
        ids = [self._random.choice((b">", b">", b">", b"0", self._id())) for _ in keys]
        options = self._options(self._maybe(0.7, b"COUNT", self._number(*COUNTS)), self._maybe(0.2, b"NOACK"))
        name = self._of_group()[1]
        return [b"XREADGROUP", b"GROUP", name, self._consumer(), *options, b"STREAMS", *keys, *ids]

    def _xack(self) -> Words:
        return [b"XACK", *self._of_group(), *self._ids()]

    def _xclaim(self) -> Words:
        idle = self._number(b"0", b"0", b"0", b"100000")
        return [b"XCLAIM", *self._of_group(), self._consumer(), idle, *self._ids()] + self._options(
            self._maybe(0.3, b"FORCE"),
            self._maybe(0.3, b"JUSTID"),
            self._maybe(0.2, b"IDLE", self._number(b"100000", b"200000", b"-5")),
            self._maybe(0.2, b"TIME", self._number(b"1000", b"-1", b"99999999999999")),
            self._maybe(0.3, b"RETRYCOUNT", self._number(b"0", b"7")),
            self._maybe(0.2, b"LASTID", self._id()),
        )

    def _xautoclaim(self) -> Words:
        idle = self._number(b"0", b"0", b"90000")
        return [b"XAUTOCLAIM", *self._of_group(), self._consumer(), idle, self._bound()] + self._options(
            self._maybe(0.5, b"COUNT", self._number(*COUNTS)), self._maybe(0.3, b"JUSTID")
        )

    def _xpending(self) -> Words:
        if self._random.random() < 0.3:
            return [b"XPENDING", *self._of_group()]
        idle = self._maybe(0.3, b"IDLE", self._number(b"90000", b"150000", b"0"))
        consumer = self._maybe(0.4, self._consumer()) + self._maybe(0.02, b"NONSENSE")
        return [b"XPENDING", *self._of_group(), *idle, self._bound(), self._bound(), self._number(*COUNTS), *consumer]

    def _xinfo(self) -> Words:
        return self._random.choice(
            (
                [b"XINFO", b"GROUPS", self._key()],
                [b"XINFO", b"CONSUMERS", *self._of_group()],
                [b"XINFO", b"STREAM", self._key(), b"FULL", *self._maybe(0.3, b"COUNT", self._number(*COUNTS))],
            )
        )
