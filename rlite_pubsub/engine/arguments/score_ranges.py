"""Ranges of sorted sets: by rank, by score, by member; each turns into a start and a stop of ranks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rlite_pubsub.engine.arguments.floats import loosely_floating
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.sorted_sets import SortedSet

_NOT_SCORES: Final = b"ERR min or max is not a float"
_NOT_MEMBERS: Final = b"ERR min or max not valid string range item"
_LOWEST: Final = b"-"
_HIGHEST: Final = b"+"


class Range(Protocol):
    """A range of any kind."""

    def bounds(self, found: SortedSet) -> tuple[int, int]:
        """Return the first rank, and the rank after the last. The range is empty if the start is not before the
        stop."""


class Ranks:
    """A range from a first to a last rank; negative ones count from the end."""

    __slots__ = ("first", "last")  # a NamedTuple takes twenty times as long to make, in a compiled package

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last

    def bounds(self, found: SortedSet) -> tuple[int, int]:
        size = len(found)
        first = max(self.first + size if self.first < 0 else self.first, 0)
        last = self.last + size if self.last < 0 else self.last
        return first, min(last, size - 1) + 1


class Scores:
    """A range from a lowest to a highest score, either of which may be excluded."""

    __slots__ = ("highest", "lowest", "without_highest", "without_lowest")

    def __init__(self, lowest: float, without_lowest: bool, highest: float, without_highest: bool) -> None:
        self.lowest = lowest
        self.without_lowest = without_lowest
        self.highest = highest
        self.without_highest = without_highest

    def bounds(self, found: SortedSet) -> tuple[int, int]:
        if self.lowest > self.highest:
            return 0, 0
        start = found.below(self.lowest, included=self.without_lowest)
        return start, found.below(self.highest, included=not self.without_highest)


class Members(NamedTuple):
    """A range from a first to a last member, either of which may be excluded; all members must have one score."""

    first: bytes
    """As it was said: `-`, `+`, or with a bracket."""
    last: bytes

    def bounds(self, found: SortedSet) -> tuple[int, int]:
        return self._start(found), self._stop(found)

    def _start(self, found: SortedSet) -> int:
        if self.first == _LOWEST:
            return 0
        if self.first == _HIGHEST:
            return len(found)
        return found.before_member(self.first[1:], included=self.first.startswith(b"("))

    def _stop(self, found: SortedSet) -> int:
        if self.last == _HIGHEST:
            return len(found)
        if self.last == _LOWEST:
            return 0
        return found.before_member(self.last[1:], included=self.last.startswith(b"["))


def ranks(first: bytes, last: bytes) -> Ranks:
    """Read a range of ranks. Raises CommandError."""
    return Ranks(integer(first), integer(last))


def score_range(lowest: bytes, highest: bytes) -> Scores:
    """Read a range of scores; a bound with `(` before it is excluded. Raises CommandError."""
    without_lowest, without_highest = lowest.startswith(b"("), highest.startswith(b"(")
    low = loosely_floating(lowest[1:] if without_lowest else lowest)
    high = loosely_floating(highest[1:] if without_highest else highest)
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        raise CommandError(_NOT_SCORES)
    return Scores(low, without_lowest, high, without_highest)


def member_range(first: bytes, last: bytes) -> Members:
    """Read a range of members; bounds begin with `[` or `(`, or are `-` or `+`. Raises CommandError."""
    for bound in (first, last):
        if bound not in (_LOWEST, _HIGHEST) and bound[:1] not in (b"[", b"("):
            raise CommandError(_NOT_MEMBERS)
    return Members(first, last)
