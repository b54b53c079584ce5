"""Redis's glob, on bytes: `*`, `?`, `[a-z]`, `[^a]` and `\\` as redis-server 7.0.15 reads them.

Laws, each a row of tests/protocol/test_glob.py, as are those below on classes:
- A pattern that is not empty never matches the empty name, `*` included.
- A backslash that ends the pattern stands for itself.
- A pattern with more than 1,000 stars before its last byte matches nothing; stars in a row count as one.

`matches` costs at most len(pattern) x len(name), whatever both are. A pattern falls at its stars into segments of fixed
length. The first and the last have one place where they can be; each one between is sought once, leftmost, after
the one before it. That is enough: a later place would leave less room to those that follow. Nothing recurses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

# -- Sets of bytes, as Redis's glob reads them from a class: bit b of an int says whether byte b is in the set.
#
# Laws, as redis-server 7.0.15 has them:
# - The first `]` closes a class: `[]` matches nothing, `[^]` any byte. A class never closed ends with the pattern.
# - In a class `x-y` is a range, in either order, whatever y is: `]` and a backslash too. x is not `]`, nor escaped.
# - Bytes of a range are ordered as C's signed char: 0x80..0xff stand before 0x00.
# - Ignoring case folds A-Z only, and leaves a byte escaped inside a class as it is.

ANY_BYTE: int = (1 << 256) - 1
_UPPER: int = ((1 << 26) - 1) << ord("A")
_LETTERS: int = _UPPER | _UPPER << 32
_HIGH_HALF: int = ANY_BYTE >> 128 << 128
_BACKSLASH, _BRACKET, _DASH = b"\\]-"


def read_class(pattern: bytes, at: int, nocase: bool) -> tuple[int, int]:
    """Return the set of bytes of the class whose `[` stands before `at`, and where the pattern goes on."""
    end = len(pattern)
    negated = pattern.startswith(b"^", at)
    at += negated
    found = 0
    while at < end:
        byte, rest = pattern[at], end - at
        if byte == _BACKSLASH and rest >= 2:
            found |= 1 << pattern[at + 1]
            at += 2
        elif byte == _BRACKET:
            at += 1
            break
        elif rest >= 3 and pattern[at + 1] == _DASH:
            found |= _range(byte, pattern[at + 2], nocase)
            at += 3
        else:
            found |= fold(1 << byte) if nocase else 1 << byte
            at += 1
    return (ANY_BYTE ^ found if negated else found), at


def _range(first: int, last: int, nocase: bool) -> int:
    """Return the set of bytes from first to last, or last to first, in the order of C's signed char."""
    low, high = sorted((first ^ 0x80, last ^ 0x80))
    if not nocase:
        biased = _run(low, high)
        return biased >> 128 | (biased << 128) & _HIGH_HALF
    # Redis lowers both ends after it has put them in order, which may undo the order: then nothing is between them.
    low, high = _lowered(low ^ 0x80), _lowered(high ^ 0x80)
    if low > high:
        return 0
    found = _run(max(low, 0), high) | (1 << 255 if low < 0 else 0)
    return found & ~_UPPER | (found >> 32) & _UPPER


def _run(low: int, high: int) -> int:
    return ((1 << (high - low + 1)) - 1) << low if low <= high else 0


def _lowered(byte: int) -> int:
    """C's tolower of a signed char, as glibc has it in the C locale: negatives come out positive, but for -1 (EOF)."""
    if byte == 0xFF:
        return -1
    return byte + 32 if ord("A") <= byte <= ord("Z") else byte


def fold(byte_set: int) -> int:
    """Return the set with both cases of its letters."""
    letters = byte_set & _LETTERS
    return byte_set | (letters & _UPPER) << 32 | (letters >> 32) & _UPPER


# A part of a segment is literal bytes, or one byte out of a set (see above).
Part = bytes | int

_TOKEN = re.compile(rb"[^*?\[\\]+|\*+|\?+|\\.?|\[", re.DOTALL)

_MOST_STARS = 1000
"""Redis recurses at each star that does not end the pattern, and gives up at this depth."""

# An anchor found in the wrong place this often is no clue: seek by sets of positions instead, whose cost is bounded.
_ANCHOR_TRIES = 8
_FIRST_WINDOW = 64
_POSITION_SETS_KEPT = 64


class Segment:
    """A part between two stars that is more than a literal: a fixed number of bytes."""

    __slots__ = ("_anchor", "_anchor_offset", "_length", "parts")

    def __init__(self, parts: list[Part]) -> None:
        self.parts = tuple(parts)
        self._anchor = b""
        self._anchor_offset = 0
        at = 0
        for part in self.parts:
            if isinstance(part, bytes):
                # Of equals the last: names differ rather in their ends.
                if len(part) >= len(self._anchor):
                    self._anchor, self._anchor_offset = part, at
                at += len(part)
            else:
                at += 1
        self._length = at

    def __len__(self) -> int:
        return self._length

    def fits(self, name: bytes, at: int) -> bool:
        """Does the segment stand at this place? The name must reach to its end."""
        for part in self.parts:
            if isinstance(part, bytes):
                if not name.startswith(part, at):
                    return False
                at += len(part)
            else:
                if not part >> name[at] & 1:
                    return False
                at += 1
        return True

    def find(self, name: bytes, start: int, end: int) -> int:
        """Return the leftmost place in name[start:end] where the segment stands whole, or -1."""
        last = end - self._length
        if self._anchor:
            before, after = self._anchor_offset, self._anchor_offset + len(self._anchor)
            for _ in range(_ANCHOR_TRIES):
                start = name.find(self._anchor, start + before, last + after) - before
                if start + before < 0:
                    return -1
                if self.fits(name, start):
                    return start
                start += 1
        window = max(_FIRST_WINDOW, self._length)
        while start <= last:
            stop = min(start + window, last + 1)
            at = self._find_by_positions(name, start, stop)
            if at >= 0:
                return at
            start, window = stop, window * 4
        return -1

    def _find_by_positions(self, name: bytes, start: int, stop: int) -> int:
        """Return the leftmost fitting place of start..stop-1, found for all of them at once.

        Bit i of `left` is the place start+i; each byte of the segment strikes out those where the name has another."""
        window = name[start : stop + self._length - 1]
        left = (1 << (stop - start)) - 1
        positions: dict[int, int] = {}
        for offset, byte_set in enumerate(self._byte_sets()):
            if byte_set == ANY_BYTE:
                continue
            held = positions.get(byte_set)
            if held is None:
                if len(positions) == _POSITION_SETS_KEPT:
                    positions.clear()
                held = positions[byte_set] = _positions(window, byte_set)
            left &= held >> offset
            if not left:
                return -1
        return start + (left & -left).bit_length() - 1

    def _byte_sets(self) -> Iterator[int]:
        for part in self.parts:
            if isinstance(part, bytes):
                for byte in part:
                    yield 1 << byte
            else:
                yield part


class Glob:
    """One pattern, compiled. Every name that matches starts with `literal_prefix` and ends with `literal_suffix`."""

    __slots__ = (
        "_head",
        "_inside",
        "_middle",
        "_tail",
        "literal_prefix",
        "literal_suffix",
        "longest",
        "pattern",
        "shortest",
    )

    def __init__(self, pattern: bytes, nocase: bool = False) -> None:
        self.pattern = pattern
        segments = _split(pattern, nocase)
        head, tail = segments[0], segments[-1] if len(segments) > 1 else b""
        self._head, self._middle, self._tail = head, tuple(segments[1:-1]), tail
        # The lengths of names that can match. Redis never enters its loop for an empty name: `*` needs a byte.
        self.shortest = max(sum(map(len, segments)), 1 if pattern else 0)
        self.longest = sys.maxsize if len(segments) > 1 else self.shortest
        stars = len(segments) - 1 - (len(segments) > 1 and not tail)
        if stars > _MOST_STARS or any(0 in segment.parts for segment in segments if isinstance(segment, Segment)):
            self.longest = -1
        self.literal_prefix = head if isinstance(head, bytes) else _literal(head.parts[0])
        end = tail if len(segments) > 1 else head
        self.literal_suffix = end if isinstance(end, bytes) else _literal(end.parts[-1])
        self._inside = bool(self._middle) or isinstance(head, Segment) or isinstance(tail, Segment)

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r})"

    @property
    def impossible(self) -> bool:
        """No name can match: the pattern has an empty class or too many stars."""
        return self.longest < self.shortest

    @property
    def exact(self) -> bool:
        """Only one name can match: `literal_prefix`."""
        return len(self.literal_prefix) == self.longest

    def literals(self) -> Iterator[bytes]:
        """Every run of bytes that a name must contain to match, in their order: prefix and suffix are among them."""
        for segment in (self._head, *self._middle, self._tail):
            for part in (segment,) if isinstance(segment, bytes) else segment.parts:
                if isinstance(part, bytes) and part:
                    yield part

    def matches(self, name: bytes) -> bool:
        if not self.shortest <= len(name) <= self.longest:
            return False
        if not (name.startswith(self.literal_prefix) and name.endswith(self.literal_suffix)):
            return False
        return not self._inside or self._matches_inside(name)

    def _matches_inside(self, name: bytes) -> bool:
        start, end = len(self._head), len(name) - len(self._tail)
        if isinstance(self._head, Segment) and not self._head.fits(name, 0):
            return False
        if isinstance(self._tail, Segment) and not self._tail.fits(name, end):
            return False
        for segment in self._middle:
            if isinstance(segment, bytes):
                start = name.find(segment, start, end)
            else:
                start = segment.find(name, start, end)
            if start < 0:
                return False
            start += len(segment)
        return True


def _split(pattern: bytes, nocase: bool) -> list[bytes | Segment]:
    """Return the pattern's segments: one more than it has (runs of) stars, the first and last may be empty."""
    segments: list[bytes | Segment] = []
    parts: list[Part] = []
    literal: list[bytes] = []
    at = 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        assert token is not None, "every byte begins a token"
        text = token[0]
        at = token.end()
        match text[:1]:
            case b"*":
                segments.append(_segment(parts, literal))
                parts, literal = [], []
            case b"?":
                _flush(parts, literal)
                parts.extend([ANY_BYTE] * len(text))
            case b"[":
                byte_set, at = read_class(pattern, at, nocase)
                _add(parts, literal, byte_set)
            case _:
                if len(text) == 2 and text.startswith(b"\\"):
                    text = text[1:]
                if nocase:
                    for byte in text:
                        _add(parts, literal, fold(1 << byte))
                else:
                    literal.append(text)
    segments.append(_segment(parts, literal))
    return segments


def _segment(parts: list[Part], literal: list[bytes]) -> bytes | Segment:
    if not parts:
        return b"".join(literal)
    _flush(parts, literal)
    return Segment(parts)


def _flush(parts: list[Part], literal: list[bytes]) -> None:
    if literal:
        parts.append(b"".join(literal))
        literal.clear()


def _add(parts: list[Part], literal: list[bytes], byte_set: int) -> None:
    if byte_set.bit_count() == 1:
        literal.append(bytes((byte_set.bit_length() - 1,)))
    else:
        _flush(parts, literal)
        parts.append(byte_set)


def _literal(part: Part) -> bytes:
    return part if isinstance(part, bytes) else b""


def _positions(name: bytes, byte_set: int) -> int:
    """Return the places of the name that hold a byte of the set: bit i stands for name[i]."""
    # Base 2 is read in linear time and has no limit on its digits.
    table = format(byte_set, "0256b").encode()[::-1]
    return int(name.translate(table)[::-1], 2)
