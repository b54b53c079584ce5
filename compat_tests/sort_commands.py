"""Random requests to sort lists, sets and sorted sets: right ones, wrong ones, and some that only look right."""

from __future__ import annotations

import random

LISTS, SETS, SORTED_SETS = (b"l1", b"l2"), (b"s1", b"s2"), (b"z1", b"z2")
MIXED = b"mixed"
"""A list of what is no number, among others."""
STORED = b"stored"
_ODD = (
    b"a", b"b", b"ab", b"", b"-1.5", b"1e3", b"0x10", b"inf", b"-inf", b"nan", b" 7", b"7 ", b"3\0z", b"z\0z", b"10",
)  # fmt: skip
"""None is too large: Redis would remember the error, and find it again in the next numbers."""
_ORDERS = (b"w_*", b"h_*->n", b"h_*->w", b"#*")
_PATTERNS = (*_ORDERS, b"#", b"*", b"w_*->", b"h_*->", b"l*", b"w_\0*", b"none_*", b"h_*->n\0", b"*_*")
_LIMITS = (b"0", b"1", b"2", b"5", b"-1", b"100", b"9223372036854775807", b"x")


class Requests:
    """An endless stream of them; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def next(self) -> list[bytes]:
        """The next request."""
        chance = self._chance
        words: list[bytes] = getattr(self, f"_{chance.choice(_KINDS)}")()
        if chance.random() < 0.02:
            words = words[: chance.randrange(2, len(words) + 1)]
        if chance.random() < 0.02:
            words.append(self._number())
        return words

    def _number(self) -> bytes:
        return b"%d" % self._chance.randrange(30)

    def _fill(self) -> list[bytes]:
        chance = self._chance
        kind = chance.randrange(5)
        if kind == 0:
            return [b"RPUSH", chance.choice(LISTS), self._number(), self._number()]
        if kind == 1:
            return [b"SADD", chance.choice(SETS), self._number(), self._number()]
        if kind == 2:
            return [b"ZADD", chance.choice(SORTED_SETS), b"%.1f" % chance.uniform(-9, 9), self._number()]
        if kind == 3:
            return [b"RPUSH", MIXED, chance.choice(_ODD)]
        return [chance.choice((b"LPOP", b"SPOP")), chance.choice((MIXED, MIXED, *LISTS))]

    def _weigh(self) -> list[bytes]:
        chance = self._chance
        number = self._number()
        weight = b"%d" % (10 * int(number) % 31 * 7) if chance.random() < 0.98 else chance.choice(_ODD)
        if chance.random() < 0.4:
            return [b"SET", b"w_" + number, weight]
        return [b"HSET", b"h_" + number, b"n", weight, b"w", b"%.3f" % chance.uniform(-5, 5)]

    def _drop(self) -> list[bytes]:
        kinds = (b"w_" + self._number(), b"h_" + self._number(), MIXED, STORED, *LISTS)
        return [b"DEL", self._chance.choice(kinds)]

    def _key(self) -> bytes:
        if self._chance.random() < 0.04:
            return self._chance.choice((b"text", b"none", b"h_1"))
        return self._chance.choice((*LISTS, *SETS, *SORTED_SETS, MIXED, STORED))

    def _sort(self) -> list[bytes]:
        chance = self._chance
        words = [chance.choice((b"SORT", b"SORT", b"sort", b"SORT_RO")), self._key()]
        is_set = words[1] in SETS
        options: list[list[bytes]] = []
        if chance.random() < 0.4:
            # what a set holds has no order of its own, so neither has what is sorted by nothing
            options.append([b"BY", chance.choice(_ORDERS if is_set else (*_PATTERNS, b"nosort"))])
        if chance.random() < 0.4:
            options += [[b"get", chance.choice(_PATTERNS)] for _ in range(chance.randrange(1, 4))]
        has_by = bool(options) and options[0][0] == b"BY"
        if chance.random() < 0.3:
            options.append([b"LIMIT", chance.choice(_LIMITS), chance.choice(_LIMITS)])
        if chance.random() < 0.4:
            options.append([chance.choice((b"ASC", b"DESC", b"desc"))])
        if chance.random() < 0.35 and not has_by:
            options.append([b"ALPHA"])
        if chance.random() < 0.25:
            options.append([b"STORE", STORED])
        if chance.random() < 0.03:
            options.append([chance.choice((b"LIMIT", b"BY", b"GET", b"STORE", b"FIRST"))])
        chance.shuffle(options)
        return words + [word for option in options for word in option]

    def _keys(self) -> list[bytes]:
        return [b"COMMAND", self._chance.choice((b"GETKEYS", b"GETKEYSANDFLAGS")), *self._sort()]

    def _alpha(self) -> list[bytes]:
        """By words, of all that there are: of few, and all of them, the order is known."""
        words = [b"SORT", self._chance.choice((*LISTS, MIXED)), b"BY", self._chance.choice(_PATTERNS), b"ALPHA"]
        return words if self._chance.random() < 0.5 else [*words, b"DESC"]


_KINDS = ("fill", "fill", "weigh", "weigh", "weigh", "drop", "sort", "sort", "sort", "sort", "sort", "keys", "alpha")
