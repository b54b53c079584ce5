"""Replies from a server that may be anybody's: read in C, within limits.

    cost        the bytes of one reply, and 64 for each line of it: about the memory that it takes; and the bytes that a
                string of it may announce
    elements    how many a single array, map, set or push may announce: hiredis makes room for all of them at once
    seconds     how long a reply may take, from its first byte to its last

What is refused is refused as soon as it is known, not when it has come. The limits cost a look at each piece for
numbers of many digits, and a count of its line ends.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final, NamedTuple

import hiredis

_NOTHING: Final = object()
_LINE_COST: Final = 64
_LARGE: Final = re.compile(rb"(?:\A|\n)(?:[*%~>|]([0-9]{7,})|[$=!]([0-9]{9,}))")
"""A count, or a length, that may be too large. It may stand in a string, too."""
_BEGUN: Final = re.compile(rb"(?:\A|\n)([*%~>|$=!][0-9]*)\Z")
_LONGEST_COUNT: Final = 24


class ReplyLimits(NamedTuple):
    """The limits of each reply."""

    cost: int = 1 << 30
    elements: int = 1 << 22
    seconds: float = float("inf")


class TooMuch(Exception):
    """The other side sends more than anybody asked for."""


class BoundedReader:
    """hiredis' Reader, as far as it is needed here. After an exception it is of no use any more."""

    def __init__(
        self, reader: Any, limits: ReplyLimits, nothing: object, refuse: Callable[[str], Exception] = TooMuch
    ) -> None:
        """`reader`: hiredis', and what its `gets` answers if no reply is whole. `refuse` makes what is raised."""
        self._reader = reader
        self._limits = limits
        self._nothing = nothing
        self._refuse = refuse
        self._ready: deque[Any] = deque()
        self._held = b""  # the begin of a count, at the end of what has come
        self._cost = 0  # of the reply under way
        self._began = 0.0

    def feed(self, data: bytes | bytearray, start: int = 0, length: int = -1) -> None:
        """Take what has come. Raises what `refuse` makes."""
        piece = bytes(data[start:] if length < 0 else data[start : start + length])
        cost = len(piece) + _LINE_COST * piece.count(b"\n")
        if not self._cost:
            self._began = monotonic()
        elif monotonic() - self._began > self._limits.seconds:
            raise self._refuse(f"the other side takes more than {self._limits.seconds:g} s for a reply")
        self._cost += cost
        if self._held:
            piece = self._held + piece
        tail = piece[-_LONGEST_COUNT:]
        begun = _BEGUN.search(tail)
        self._held = begun[1] if begun is not None else b""
        if self._held:
            piece = piece[: len(piece) - len(self._held)]
        at = 0
        for found in _LARGE.finditer(piece):
            is_count = found[1] is not None
            digits = found[1] if is_count else found[2]
            most = self._limits.elements if is_count else self._limits.cost
            if len(digits) > _LONGEST_COUNT or int(digits) > most:
                begins = found.end() - len(digits) - 1
                self._reader.feed(piece[at:begins])
                at = begins
                self._drain(cost)
                if not self._reader.has_data():  # else it stands in a string, all of which is not there yet
                    what = "elements" if is_count else "bytes"
                    raise self._refuse(f"the other side announces {digits[:20].decode()} {what}")
        self._reader.feed(piece[at:] if at else piece)
        self._drain(cost)
        if self._cost > self._limits.cost:
            raise self._refuse("the other side sends a reply that takes too much memory")

    def _drain(self, cost: int) -> None:
        gets, nothing, ready = self._reader.gets, self._nothing, self._ready
        before = len(ready)
        while (found := gets()) is not nothing:
            ready.append(found)
        if len(ready) > before:  # what is under way, if anything, has come with this piece
            self._cost = cost if self._held or self._reader.has_data() else 0

    def gets(self, *how: Any) -> Any:
        """The next reply."""
        return self._ready.popleft() if self._ready else self._nothing

    def has_data(self) -> bool:
        """Whether something has come that was not taken."""
        return bool(self._ready) or bool(self._held) or bool(self._reader.has_data())


def bounded_reader(limits: ReplyLimits) -> BoundedReader:
    """One whose `gets` answers `NOTHING` if no reply is whole; errors are hiredis'."""
    return BoundedReader(hiredis.Reader(notEnoughData=_NOTHING), limits, _NOTHING)


NOTHING: Final = _NOTHING
