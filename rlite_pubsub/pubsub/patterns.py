"""Finding the patterns that match a channel without asking each of them.

Law: every pattern stands in one bucket, under something that any channel it matches must have: the whole name, a
literal prefix or suffix, or a gram (1 to 4 bytes in a row, anywhere). A channel looks into the buckets of what it has
itself, and only the patterns found there are asked. So a pattern is never missed, and never found twice.

Of its possible buckets a pattern takes an emptiest: ten thousand `news.*.N.*` share a prefix, and are told apart by N.
What can never match stands in none; what has no literal at all (`*`, `?[ab]*`) stands in one that is always asked.

A hostile client makes a lookup dearer by the number of its patterns alone, and never dearer than to ask them all:
lengths of prefixes and suffixes are rounded down to a few, and where patterns are few a channel is not cut into grams.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import TypeAlias

from rlite_pubsub.protocol.glob import Glob

# Prefixes and suffixes of these lengths are looked up: each one in use costs each new channel some 60 ns.
_END_LENGTHS: tuple[int, ...] = (*range(1, 33), 40, 48, 64, 96, 128)
_GRAM_SIZES = (4, 3, 2, 1)
# How much of a pattern is considered for its grams: of each literal the end, which is where numbers stand.
_LITERALS_CONSIDERED = 32
_BYTES_CONSIDERED = 128
# Asking this many patterns costs less than cutting a channel in one more way: up to here a bucket is as good as empty.
_CROWD = 4
# Asking so few patterns costs less than cutting the channel into its grams, for a short channel and for a long one.
_BYTES_CUT_PER_PATTERN_ASKED = 10
_PATTERNS_ASKED_AT_MOST = 100

Gram: TypeAlias = tuple[int, ...]
Key: TypeAlias = bytes | Gram
Bucket: TypeAlias = "dict[int, _Entry]"
# How a channel is cut: name[start:stop] for an end, or the size of its grams.
End: TypeAlias = tuple[int | None, int | None]
Cut: TypeAlias = End | int

_WHOLE: End = (None, None)
_NOTHING: End = (0, 0)


class _Entry:
    __slots__ = ("cut", "glob", "key", "serial")

    def __init__(self, glob: Glob, serial: int) -> None:
        self.glob = glob
        self.serial = serial
        self.cut: Cut | None = None
        self.key: Key = b""


class PatternIndex:
    """A set of patterns, in the order in which they were added."""

    def __init__(self) -> None:
        self._entries: dict[bytes, _Entry] = {}
        self._ends: dict[End, dict[Key, Bucket]] = {}
        self._grams: dict[int, dict[Key, Bucket]] = {}
        self._next_serial = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._entries)

    def __contains__(self, pattern: object) -> bool:
        return pattern in self._entries

    def add(self, pattern: bytes) -> None:
        """A pattern that is held already stays in its place."""
        if pattern in self._entries:
            return
        glob = Glob(pattern)
        entry = self._entries[pattern] = _Entry(glob, self._next_serial)
        self._next_serial += 1
        if glob.impossible:
            return
        entry.cut, entry.key = self._choose(glob)
        table = self._table(entry.cut)
        if table is None:
            table = {}
            if isinstance(entry.cut, int):
                self._grams[entry.cut] = table
            else:
                self._ends[entry.cut] = table
        table.setdefault(entry.key, {})[entry.serial] = entry

    def remove(self, pattern: bytes) -> None:
        """KeyError where the pattern is not held."""
        entry = self._entries.pop(pattern)
        if entry.cut is None:
            return
        table = self._table(entry.cut)
        assert table is not None, "an entry's table lives as long as the entry"
        bucket = table[entry.key]
        del bucket[entry.serial]
        if not bucket:
            del table[entry.key]
        if not table:
            if isinstance(entry.cut, int):
                del self._grams[entry.cut]
            else:
                del self._ends[entry.cut]

    def _table(self, cut: Cut) -> dict[Key, Bucket] | None:
        return self._grams.get(cut) if isinstance(cut, int) else self._ends.get(cut)

    def matching(self, channel: bytes) -> list[bytes]:
        """Return the patterns that match, in the order in which they were added."""
        found = [entry for bucket in self._buckets(channel) for entry in bucket.values() if entry.glob.matches(channel)]
        if len(found) > 1:
            found.sort(key=attrgetter("serial"))
        return [entry.glob.pattern for entry in found]

    def _buckets(self, channel: bytes) -> list[Bucket]:
        found: list[Bucket] = []
        for (start, stop), table in self._ends.items():
            bucket = table.get(channel[start:stop])
            if bucket is not None:
                found.append(bucket)
        for size, table in self._grams.items():
            if len(table) < min(len(channel) // _BYTES_CUT_PER_PATTERN_ASKED, _PATTERNS_ASKED_AT_MOST):
                found.extend(table.values())
            else:
                found.extend([table[gram] for gram in set(filter(table.__contains__, _grams(channel, size)))])
        return found

    def _choose(self, glob: Glob) -> tuple[Cut, Key]:
        """The cut that is cheapest and still not crowded, or else the least crowded; and the emptiest bucket in it."""
        if glob.exact:
            return _WHOLE, glob.literal_prefix
        best: tuple[Cut, Key] = _NOTHING, b""
        fewest: float = float("inf")
        for cut, keys in _possible_buckets(glob):
            table = self._table(cut) or {}
            crowd, key = min((len(table.get(key, ())), key) for key in keys)
            if crowd < fewest:
                best, fewest = (cut, key), crowd
            if crowd < _CROWD:
                break
        return best


def _possible_buckets(glob: Glob) -> Iterator[tuple[Cut, list[Key]]]:
    """The cut that is cheapest to look up first."""
    if glob.literal_prefix:
        length = _end_length(len(glob.literal_prefix))
        yield (None, length), [glob.literal_prefix[:length]]
    if glob.literal_suffix:
        length = _end_length(len(glob.literal_suffix))
        yield (-length, None), [glob.literal_suffix[-length:]]
    literals = [literal[-_BYTES_CONSIDERED:] for literal in islice(glob.literals(), _LITERALS_CONSIDERED)]
    for size in _GRAM_SIZES:
        # A literal's shorter grams are not considered: they are in all the patterns that its longer ones are in.
        cut_here = [literal for literal in literals if min(len(literal), _GRAM_SIZES[0]) == size]
        if cut_here:
            yield size, [gram for literal in cut_here for gram in _grams(literal, size)]


def _end_length(length: int) -> int:
    return _END_LENGTHS[bisect_right(_END_LENGTHS, length) - 1]


def _grams(text: bytes, size: int) -> Iterator[Gram]:
    """Every `size` bytes that stand in a row."""
    return zip(*(text[start:] for start in range(size)), strict=False)
