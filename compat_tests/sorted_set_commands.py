"""Random requests about sorted sets: right ones, wrong ones, and some that only look right."""

from __future__ import annotations

import random

SORTED_SETS = (b"z1", b"z2", b"z3", b"large")
FLAT = b"flat"
"""All of its members have one score: else ranges of members mean nothing."""
OTHERS = (b"set", b"text", b"none")
_NUMBERS = (
    b"0", b"-0", b"1", b"2", b"3", b"-1", b"0.1", b"1.5", b"-2.25", b"1e3", b"1e-3", b"inf", b"-inf", b"+inf", b"3.0",
    b"100000000000000000000", b"4503599627370497", b"0x10", b"1e400", b"1e-400", b"nan", b"x", b"", b" 1", b"1 ",
    b"1_0", b"Infinity", b".5", b"5.", b"-.5e1",
)  # fmt: skip
_RIGHT = 11
_BRACKETS = (b"", b"", b"(", b"(")
_RANKS = (b"0", b"1", b"-1", b"2", b"-3", b"5", b"100", b"-100", b"x", b"9223372036854775807", b"-9223372036854775808")
_MEMBERS = (b"a", b"b", b"c", b"d", b"ab", b"abc", b"", b"1", b"10", b"-7", b"\xff", b"x" * 64, b"y" * 65, b"z\0z")
_COUNTS = (b"0", b"1", b"2", b"3", b"-1", b"-2", b"10", b"x", b"9223372036854775807", b"-9223372036854775807", b"1.5")


class Requests:
    """An endless stream of them; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._is_queueing = False

    def next(self) -> list[bytes]:
        """The next request."""
        chance = self._chance
        if chance.random() < 0.02:
            self._is_queueing = not self._is_queueing
            return [b"MULTI" if self._is_queueing else b"EXEC"]
        words = getattr(self, f"_{chance.choice(_KINDS)}")()
        if chance.random() < 0.02:
            words = words[: chance.randrange(1, len(words) + 1)]
        if chance.random() < 0.02:
            words.append(self._member())
        return list(words)

    def _key(self) -> bytes:
        return self._chance.choice(SORTED_SETS if self._chance.random() < 0.93 else OTHERS)

    def _score(self) -> bytes:
        return self._chance.choice(_NUMBERS[:_RIGHT] if self._chance.random() < 0.9 else _NUMBERS)

    def _member(self) -> bytes:
        if self._chance.random() < 0.6:
            return b"m%d" % self._chance.randrange(200)
        return self._chance.choice(_MEMBERS)

    def _same(self, word: bytes) -> bytes:
        return word if self._chance.random() < 0.5 else word.lower()

    def _bound(self) -> bytes:
        return self._chance.choice(_BRACKETS) + self._score()

    def _lex(self) -> bytes:
        if self._chance.random() < 0.2:
            return self._chance.choice((b"-", b"+", b"-x", b"", b"a", b"+1"))
        return self._chance.choice((b"[", b"(")) + self._member()

    def _add(self) -> list[bytes]:
        words = [self._same(b"ZADD"), self._key()]
        while self._chance.random() < 0.25:
            words.append(self._same(self._chance.choice((b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR", b"CH"))))
        for _ in range(self._chance.choice((1, 1, 1, 2, 3, 20))):
            words += [self._score(), self._member()]
        return words

    def _flat(self) -> list[bytes]:
        """Members of one score, for ranges of members."""
        words = [b"ZADD", FLAT]
        for _ in range(self._chance.randrange(1, 10)):
            words += [b"0", self._member()]
        return words

    def _incr(self) -> list[bytes]:
        return [b"ZINCRBY", self._key(), self._score(), self._member()]

    def _rem(self) -> list[bytes]:
        return [b"ZREM", self._key(), *(self._member() for _ in range(self._chance.randrange(1, 6)))]

    def _ask(self) -> list[bytes]:
        name = self._chance.choice((b"ZSCORE", b"ZRANK", b"ZREVRANK", b"ZMSCORE", b"ZCARD", b"TYPE"))
        words = [name, self._key()]
        if name == b"ZMSCORE":
            return [*words, self._member(), self._member(), self._member()]
        return words if name in (b"ZCARD", b"TYPE") else [*words, self._member()]

    def _count(self) -> list[bytes]:
        if self._chance.random() < 0.5:
            return [b"ZCOUNT", self._key(), self._bound(), self._bound()]
        return [b"ZLEXCOUNT", FLAT, self._lex(), self._lex()]

    def _options(self, *options: bytes) -> list[bytes]:
        words: list[bytes] = []
        for option in options:
            if self._chance.random() < 0.3:
                words.append(self._same(option))
                if option == b"LIMIT":
                    words += [self._chance.choice(_RANKS[:8]), self._chance.choice(_RANKS[:8])]
        return words

    def _range(self) -> list[bytes]:
        name = self._chance.choice((b"ZRANGE", b"ZREVRANGE"))
        bounds = [self._chance.choice(_RANKS), self._chance.choice(_RANKS)]
        return [name, self._key(), *bounds, *self._options(b"WITHSCORES", b"REV", b"LIMIT")[:3]]

    def _by_score(self) -> list[bytes]:
        name = self._chance.choice((b"ZRANGEBYSCORE", b"ZREVRANGEBYSCORE", b"ZRANGE"))
        more = [b"BYSCORE"] if name == b"ZRANGE" else []
        options = self._options(b"WITHSCORES", b"LIMIT", *([b"REV"] if more else []))
        return [name, self._key(), self._bound(), self._bound(), *more, *options]

    def _by_lex(self) -> list[bytes]:
        name = self._chance.choice((b"ZRANGEBYLEX", b"ZREVRANGEBYLEX", b"ZRANGE"))
        more = [b"BYLEX"] if name == b"ZRANGE" else []
        options = self._options(b"LIMIT", *([b"REV"] if more else []), *([b"WITHSCORES"] if more else []))
        return [name, FLAT, self._lex(), self._lex(), *more, *options]

    def _store(self) -> list[bytes]:
        words = [b"ZRANGESTORE", self._key(), self._key()]
        if self._chance.random() < 0.5:
            bounds = [self._chance.choice(_RANKS), self._chance.choice(_RANKS)]
            return [*words, *bounds, *self._options(b"REV", b"LIMIT")]
        return [*words, self._bound(), self._bound(), b"BYSCORE", *self._options(b"REV", b"LIMIT", b"WITHSCORES")]

    def _cut(self) -> list[bytes]:
        kind = self._chance.randrange(3)
        if kind == 0:
            bounds = [self._chance.choice(_RANKS[:6]), self._chance.choice(_RANKS[:6])]
            return [b"ZREMRANGEBYRANK", self._key(), *bounds]
        if kind == 1:
            return [b"ZREMRANGEBYSCORE", self._key(), self._bound(), self._bound()]
        return [b"ZREMRANGEBYLEX", FLAT, self._lex(), self._lex()]

    def _pop(self) -> list[bytes]:
        chance = self._chance
        kind = chance.randrange(3)
        if kind == 0:
            more = [chance.choice(_COUNTS)] if chance.random() < 0.5 else []
            return [chance.choice((b"ZPOPMIN", b"ZPOPMAX")), self._key(), *more]
        keys = [self._key() for _ in range(chance.randrange(1, 4))]
        if kind == 1:
            return [chance.choice((b"BZPOPMIN", b"BZPOPMAX")), *keys, chance.choice((b"0.001", b"x", b"-1", b"0.01"))]
        words = [b"%d" % (len(keys) if chance.random() < 0.9 else chance.randrange(-1, 6)), *keys]
        words.append(chance.choice((b"MIN", b"MAX", b"min", b"mid")))
        if chance.random() < 0.4:
            words += [b"COUNT", chance.choice(_COUNTS)]
        if chance.random() < 0.3:
            return [b"BZMPOP", chance.choice((b"0.001", b"x", b"0.01")), *words]
        return [b"ZMPOP", *words]

    def _together(self) -> list[bytes]:
        chance = self._chance
        name = chance.choice(_TOGETHER)
        keys = [self._key() if chance.random() < 0.9 else b"set" for _ in range(chance.randrange(1, 4))]
        count = len(keys) if chance.random() < 0.92 else chance.randrange(-1, 6)
        words = [name, *([self._key()] if name.endswith(b"STORE") else []), b"%d" % count, *keys]
        if chance.random() < 0.3:
            words += [self._same(b"WEIGHTS"), *(self._score() for _ in keys)]
        if chance.random() < 0.3:
            words += [self._same(b"AGGREGATE"), chance.choice((b"SUM", b"MIN", b"max", b"avg"))]
        if chance.random() < 0.5:
            words.append(self._same(b"WITHSCORES"))
        if name == b"ZINTERCARD" and chance.random() < 0.7:
            words = [name, b"%d" % count, *keys, b"LIMIT", chance.choice(_COUNTS)]
        return words

    def _draw(self) -> list[bytes]:
        chance = self._chance
        if chance.random() < 0.5:
            more = [chance.choice((b"0", b"-3", b"1000", b"x"))]
            return [b"ZRANDMEMBER", self._key(), *more, *([b"WITHSCORES"] if chance.random() < 0.5 else [])]
        words = [b"ZSCAN", self._key(), b"0", b"COUNT", b"100000"]
        return [*words, b"MATCH", b"m1*"] if chance.random() < 0.3 else words

    def _whole(self) -> list[bytes]:
        chance = self._chance
        return chance.choice(
            (
                [b"COPY", chance.choice(SORTED_SETS), chance.choice(SORTED_SETS), b"REPLACE"],
                [b"RENAME", chance.choice(SORTED_SETS), chance.choice(SORTED_SETS)],
                [b"OBJECT", b"ENCODING", self._key()],
                [b"DEBUG", b"DIGEST-VALUE", self._key()],
                [b"GET", chance.choice(SORTED_SETS)],
                [b"SADD", b"set", self._member(), self._member()],
                [b"DEL", self._key()] if chance.random() < 0.2 else [b"EXISTS", self._key()],
            )
        )

    def _fill(self) -> list[bytes]:
        """Beyond what Redis keeps in a listpack."""
        words = [b"ZADD", b"large"]
        for _ in range(60):
            words += [b"%d" % self._chance.randrange(50), b"m%d" % self._chance.randrange(400)]
        return words


_TOGETHER = (b"ZUNION", b"ZINTER", b"ZDIFF", b"ZUNIONSTORE", b"ZINTERSTORE", b"ZDIFFSTORE", b"ZINTERCARD")
_KINDS = (
    "add", "add", "add", "add", "flat", "flat", "incr", "rem", "ask", "ask", "ask", "count", "range", "range",
    "by_score", "by_score", "by_lex", "by_lex", "store", "cut", "pop", "together", "together", "draw", "whole", "fill",
)  # fmt: skip
