"""Random requests about topics that are sealed all the time, in tiny blocks, beside a server that seals nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from cold_server import Sealer, Twins, Words, about, hot_bytes
from patience import until

BLOCK_BYTES = 32 << 10
STEPS = 400
KEYS = ("a", "a", "a", "b")

Seal = Callable[..., Sealer]


class Requests:
    """An endless source: entries have ids from 1 on, in order, and many requests are about a few of them."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)
        self._last: dict[str, int] = {"a": 0, "b": 0}
        makers: dict[Callable[[str], list[Words]], float] = {
            self._add: 30,
            self._read: 25,
            self._delete: 8,
            self._trim: 4,
            self._add_and_trim: 3,
            self._group: 25,
            self._transaction: 3,
            self._whole: 0.4,
        }
        self._makers, self._weights = list(makers), list(makers.values())

    def next(self) -> list[Words]:
        return self._dice.choices(self._makers, self._weights)[0](self._dice.choice(KEYS))

    def _id(self, key: str) -> str:
        dice, last = self._dice, self._last[key]
        number = max(last - dice.choice((0, 5, 50, 300, 1000)) + dice.randrange(-5, 5), 0)
        return f"{number}-{dice.choice((number % 3, number % 3, 0, 1, 2))}"

    def _bound(self, key: str) -> str:
        return self._dice.choice(("-", "+", self._id(key), "(" + self._id(key)))

    def _count(self) -> Words:
        return self._dice.choice(((), ("COUNT", 1), ("COUNT", 10), ("COUNT", 200)))

    def _new(self, key: str) -> Words:
        self._last[key] += 1
        number = self._last[key]
        size = self._dice.choice((1, 20, 20, 100, 100, 600))
        names = self._dice.choice((("v",), ("v", "w"), ("v", "v", "\r\n*3")))
        fields = [word for name in names for word in (name, self._dice.randbytes(2) * (size // 2))]
        return (f"{number}-{number % 3}", *fields)

    def _add(self, key: str) -> list[Words]:
        return [("XADD", key, *self._new(key)) for _ in range(self._dice.choice((1, 20, 90)))]

    def _add_and_trim(self, key: str) -> list[Words]:
        kept = ("MAXLEN", self._dice.choice((300, 1000))) if self._dice.random() < 0.5 else ("MINID", self._id(key))
        return [("XADD", key, *kept, *self._new(key))]

    def _read(self, key: str) -> list[Words]:
        return [
            self._dice.choice(
                (
                    ("XRANGE", key, self._bound(key), self._bound(key), *self._count()),
                    ("XREVRANGE", key, self._bound(key), self._bound(key), *self._count()),
                    ("XREAD", *self._count(), "STREAMS", "a", "b", self._id("a"), self._id("b")),
                    ("XLEN", key),
                    ("XINFO", "STREAM", key),
                    ("DEBUG", "DIGEST-VALUE", key),
                )
            )
            for _ in range(self._dice.choice((1, 5)))
        ]

    def _delete(self, key: str) -> list[Words]:
        ids = [self._id(key) for _ in range(self._dice.choice((1, 3, 40)))]
        if self._dice.random() < 0.3:
            return [("XDELEX", key, *self._references(), "IDS", len(ids), *ids)]
        return [("XDEL", key, *ids)]

    def _trim(self, key: str) -> list[Words]:
        dice = self._dice
        by = dice.choice((("MAXLEN", "=", dice.choice((200, 500, 900))), ("MINID", self._id(key))))
        return [("XTRIM", key, *by, *(self._references() if dice.random() < 0.3 else ()))]

    def _references(self) -> Words:
        return self._dice.choice(((), ("KEEPREF",), ("DELREF",), ("ACKED",)))

    def _group(self, key: str) -> list[Words]:
        dice, name = self._dice, self._dice.choice(("g", "h"))
        read = ("XREADGROUP", "GROUP", name, dice.choice(("c", "d")))
        return [
            dice.choice(
                (
                    ("XGROUP", "CREATE", key, name, self._id(key), "MKSTREAM"),
                    ("XGROUP", "SETID", key, name, self._id(key)),
                    (*read, *self._count(), "STREAMS", key, ">"),
                    (*read, *self._count(), "STREAMS", key, ">"),
                    (*read, *self._count(), "NOACK", "STREAMS", key, ">"),
                    (*read, *self._count(), "STREAMS", key, self._id(key)),
                    ("XCLAIM", key, name, "e", 0, self._id(key), self._id(key), *dice.choice(((), ("FORCE",)))),
                    ("XAUTOCLAIM", key, name, "e", 0, self._id(key), "COUNT", 20),
                    ("XACK", key, name, self._id(key), self._id(key)),
                    ("XACKDEL", key, name, *self._references(), "IDS", 2, self._id(key), self._id(key)),
                    ("XPENDING", key, name),
                    ("XINFO", "GROUPS", key),
                )
            )
            for _ in range(dice.choice((1, 4)))
        ]

    def _transaction(self, key: str) -> list[Words]:
        inside = [words for _ in range(3) for words in self._makers[self._dice.randrange(3)](key)]
        return [("MULTI",), *[words for words in inside if words[0] != "XINFO"], ("EXEC",)]

    def _whole(self, key: str) -> list[Words]:
        self._last = dict.fromkeys(self._last, max(self._last.values()))  # for what is copied
        other = "b" if key == "a" else "a"
        return [
            self._dice.choice(
                (
                    ("COPY", key, other, "REPLACE"),
                    ("RENAME", key, other),
                    ("DEL", key),
                    ("SWAPDB", 0, 1),
                    ("XSETID", key, self._id(key)),
                    ("XTRIM", key, "MAXLEN", 0),
                )
            )
        ]


def is_hot_part_small(twins: Twins, name: str) -> bool:
    return hot_bytes(twins.cold, name) < 4 * BLOCK_BYTES


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_are_answered_as_if_nothing_were_ever_sealed(twins: Twins, seal: Seal, seed: int) -> None:
    twins.cold.do("CONFIG", "SET", "cold-cache", 0 if seed % 2 else 1 << 20)
    requests = Requests(seed)
    sealer = seal(twins.cold_server.store_folder, BLOCK_BYTES, grace_s=0)
    sealed = 0
    for step in range(STEPS):
        for words in requests.next():
            twins.do(*words)
        if step % 100 == 99:
            for name in ("a", "b"):
                if twins.do("EXISTS", name):
                    until(partial(is_hot_part_small, twins, name), "sealing")
                    twins.assert_alike(name)
                    sealed += about(twins.cold, name)[b"cold-entries"]
    sealer.end()
    assert sealed
