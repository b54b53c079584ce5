"""Where nothing is: runs of rows that were removed, and that a walk need not step over again.

A removed row is in a window until that is home, and in LMDB until then. Who takes the first row of a queue, again and
again, would step over all that were taken before it. So a walk that has stepped over many notes from where to where
there was nothing. A snapshot may jump over that if nobody has put anything there between the place at which it was
noted and its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from threading import Lock
from typing import Final, TypeAlias

from rlite_pubsub.storage.log.place import Place

LEAST_STEPS: Final = 16
"""So many removed rows are worth a note."""
_MOST: Final = 64

Gap: TypeAlias = tuple[bytes, bytes]
"""There is no row from the first key on, up to the second, which is not in it."""


def _place_of(gaps: list[Gap], key: bytes) -> int:
    """Return which of the gaps a key lies in, -1 for none; they are in order, and do not overlap."""
    at = bisect_right(gaps, key, key=_begin) - 1
    return at if at >= 0 and key < gaps[at][1] else -1


def _begin(gap: Gap) -> bytes:
    return gap[0]


def around(gaps: list[Gap], key: bytes) -> Gap | None:
    """Return the gap in which a key lies."""
    at = _place_of(gaps, key)
    return gaps[at] if at >= 0 else None


def fill(gaps: list[Gap], key: bytes) -> None:
    """There is a row now."""
    at = _place_of(gaps, key)
    if at >= 0:
        begin, end = gaps[at]
        gaps[at : at + 1] = [(one, other) for one, other in ((begin, key), (key + b"\0", end)) if one < other]


def note(gaps: list[Gap], begin: bytes, end: bytes) -> None:
    """There is nothing from the one key up to the other."""
    kept = list[Gap]()
    for gap in gaps:
        if gap[1] < begin or end < gap[0]:
            kept.append(gap)
        else:
            begin, end = min(begin, gap[0]), max(end, gap[1])
    if len(kept) >= _MOST:
        kept.pop(0)
    kept.append((begin, end))
    kept.sort()
    gaps[:] = kept


class Gaps:
    """What this process knows of them."""

    def __init__(self, changed: Callable[[Place, Place], list[bytes] | None]) -> None:
        """`changed` returns the keys that were changed between two places; None if that is not known."""
        self._changed = changed
        self._lock = Lock()
        self._place = Place(0, 0)
        self._gaps: list[Gap] = []

    def at(self, place: Place) -> list[Gap]:
        """Return those that hold for a snapshot of this place, for its own use."""
        with self._lock:
            if not self._gaps or place < self._place:
                return []
            if place > self._place:
                keys = self._changed(self._place, place)
                if keys is None:
                    self._gaps = []
                else:
                    for key in keys:
                        fill(self._gaps, key)
                self._place = place
            return self._gaps.copy()

    def learn(self, gaps: list[Gap], place: Place) -> None:
        """Take over what a transaction has found, which holds at this place."""
        with self._lock:
            if place >= self._place:
                self._gaps, self._place = gaps, place
