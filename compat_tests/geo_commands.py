"""Random requests about sorted sets of places: right ones, wrong ones, and some that only look right."""

from __future__ import annotations

import random

PLACES = (b"p1", b"p2", b"large")
EDGES = b"edges"
"""Few members, at the ends of the map: many of them are as far from one place as from another."""
SCORES = b"scores"
"""Scores that GEOADD would not make."""
STORED = b"stored"
"""Distances as scores: nothing is looked for in it. Redis does not say which of members equally far come first."""
OTHERS = (b"text", b"none")
_UNITS = (b"m", b"km", b"ft", b"mi", b"KM", b"M")
_RADII = (b"0", b"1", b"100", b"5000", b"2e6", b"20000", b"1.5", b"300000", b"1e9", b"6371", b"1000")
_WRONG_NUMBERS = (b"x", b"-1", b"nan", b"inf", b"", b"1e400", b"-0", b" 1")
_LONGITUDES = (b"180", b"-180", b"0", b"179.9999999", b"-179.9999999", b"90", b"-0.0000001")
_LATITUDES = (b"85.05112878", b"-85.05112878", b"0", b"85", b"-85", b"66.5", b"-80.1", b"1e-7")
_SCORES = (
    b"0", b"-1", b"1", b"inf", b"-inf", b"1e20", b"9007199254740993", b"1.5", b"-9e18", b"1.3e19", b"4503599627370496",
)  # fmt: skip
_OPTIONS = (b"WITHDIST", b"WITHHASH", b"WITHCOORD", b"ASC", b"DESC", b"COUNT", b"ANY", b"withdist")
_COUNTS = (b"1", b"2", b"3", b"10", b"1000", b"0", b"-1", b"x", b"9223372036854775807")


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
        words: list[bytes] = getattr(self, f"_{chance.choice(_KINDS)}")()
        if chance.random() < 0.02:
            words = words[: chance.randrange(1, len(words) + 1)]
        if chance.random() < 0.02:
            words.append(self._member())
        return words

    def _key(self) -> bytes:
        if self._chance.random() < 0.93:
            return self._chance.choice((*PLACES, *PLACES, EDGES, SCORES))
        return self._chance.choice(OTHERS)

    def _member(self) -> bytes:
        return b"m%d" % self._chance.randrange(60)

    def _place(self) -> list[bytes]:
        chance = self._chance
        kind = chance.random()
        if kind < 0.03:
            return [chance.choice((b"181", b"x", b"-180.0001", b"inf", b"nan")), b"1"]
        if kind < 0.06:
            return [b"1", chance.choice((b"86", b"-85.06", b"", b"1e400", b"-inf"))]
        if kind < 0.5:
            return [b"%.6f" % chance.uniform(13, 14), b"%.6f" % chance.uniform(37, 38)]
        return [b"%.7f" % chance.uniform(-180, 180), b"%.7f" % chance.uniform(-85.05, 85.05)]

    def _edge(self) -> list[bytes]:
        return [self._chance.choice(_LONGITUDES), self._chance.choice(_LATITUDES)]

    def _add(self) -> list[bytes]:
        chance = self._chance
        words = [b"GEOADD", chance.choice((*PLACES, *PLACES, *OTHERS))]
        while chance.random() < 0.2:
            words.append(chance.choice((b"NX", b"XX", b"CH", b"ch", b"GT")))
        for _ in range(chance.choice((1, 1, 2, 5, 20))):
            words += [*self._place(), self._member()]
        return words

    def _fill(self) -> list[bytes]:
        """Beyond what Redis keeps in a listpack."""
        words = [b"GEOADD", b"large"]
        for _ in range(60):
            words += [b"%.7f" % self._chance.uniform(-180, 180), b"%.7f" % self._chance.uniform(-85, 85)]
            words.append(b"m%d" % self._chance.randrange(400))
        return words

    def _odd(self) -> list[bytes]:
        if self._chance.random() < 0.5:
            return [b"GEOADD", EDGES, *self._edge(), b"m%d" % self._chance.randrange(6)]
        return [b"ZADD", SCORES, self._chance.choice(_SCORES), b"m%d" % self._chance.randrange(6)]

    def _ask(self) -> list[bytes]:
        members = [self._member() for _ in range(self._chance.randrange(0, 4))]
        return [self._chance.choice((b"GEOPOS", b"GEOHASH")), self._key(), *members]

    def _dist(self) -> list[bytes]:
        words = [b"GEODIST", self._key(), self._member(), self._member()]
        if self._chance.random() < 0.5:
            words.append(self._unit())
        return words

    def _unit(self) -> bytes:
        return self._chance.choice(_UNITS) if self._chance.random() < 0.97 else b"yard"

    def _radius(self) -> bytes:
        return self._chance.choice(_RADII if self._chance.random() < 0.95 else _WRONG_NUMBERS)

    def _center(self) -> list[bytes]:
        return self._edge() if self._chance.random() < 0.3 else self._place()

    def _options(self) -> list[bytes]:
        chance = self._chance
        words: list[bytes] = []
        while chance.random() < 0.6:
            option = chance.choice(_OPTIONS)
            words.append(option)
            if option == b"COUNT":
                words.append(chance.choice(_COUNTS[:5] if chance.random() < 0.9 else _COUNTS))
                words += [b"any"] if chance.random() < 0.3 else []
        return words

    def _around(self) -> list[bytes]:
        chance = self._chance
        if chance.random() < 0.5:
            words = [chance.choice((b"GEORADIUS", b"GEORADIUS_RO")), self._key(), *self._center()]
        else:
            words = [chance.choice((b"GEORADIUSBYMEMBER", b"georadiusbymember_ro")), self._key(), self._member()]
        words += [self._radius(), self._unit()]
        if chance.random() < 0.2:
            option = chance.choice((b"STORE", b"STOREDIST"))
            words += [option, self._target(words[1], option == b"STOREDIST")]
            return words if chance.random() < 0.8 else words + self._options()
        return words + self._options()

    def _target(self, source: bytes, by_distance: bool) -> bytes:
        return STORED if by_distance or source not in PLACES else self._chance.choice((STORED, b"p1"))

    def _area(self) -> list[bytes]:
        chance = self._chance
        center = [b"FROMMEMBER", self._member()] if chance.random() < 0.5 else [b"FROMLONLAT", *self._center()]
        shape = [b"BYRADIUS", self._radius(), self._unit()]
        if chance.random() < 0.5:
            shape = [b"BYBOX", self._radius(), self._radius(), self._unit()]
        parts = [center, shape]
        if chance.random() < 0.05:
            parts.append([b"FROMMEMBER", self._member()])
        if chance.random() < 0.05:
            parts.append([b"BYRADIUS", b"10", b"km"])
        if chance.random() < 0.05:
            parts.pop(chance.randrange(len(parts)))
        chance.shuffle(parts)
        return [word for part in parts for word in part]

    def _search(self) -> list[bytes]:
        return [self._chance.choice((b"GEOSEARCH", b"geosearch")), self._key(), *self._area(), *self._options()]

    def _store(self) -> list[bytes]:
        key, by_distance = self._key(), self._chance.random() < 0.5
        words = [b"GEOSEARCHSTORE", self._target(key, by_distance), key, *self._area()]
        if by_distance:
            words.append(b"STOREDIST")
        if self._chance.random() < 0.4:
            words += [b"COUNT", b"%d" % self._chance.randrange(1, 9), *self._options()[:2]]
        return words

    def _whole(self) -> list[bytes]:
        chance = self._chance
        return chance.choice(
            (
                [b"ZREM", self._key(), self._member(), self._member()],
                [b"GEOPOS", STORED, self._member(), self._member()],
                [b"ZRANGE", self._key(), b"0", b"-1", b"WITHSCORES"],
                [b"DEL", self._key()] if chance.random() < 0.1 else [b"EXISTS", self._key()],
            )
        )


_KINDS = (
    "add", "add", "add", "fill", "odd", "ask", "dist", "around", "around", "around", "search", "search", "search",
    "search", "store", "whole",
)  # fmt: skip
