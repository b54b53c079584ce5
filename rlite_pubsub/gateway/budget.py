"""A slow look-up runs less often: it may take this share of the time, and until then the last result stands."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

T = TypeVar("T")

WATCHED, UNWATCHED = 0.02, 0.002
"""The share of the time while somebody looks on, and while nobody does."""


class Budgeted(Generic[T]):
    """One thing that is looked at again and again."""

    def __init__(self, look: Callable[[], T]) -> None:
        """`look` does not fail."""
        self._look = look
        self._found: T | None = None
        self._looked_at = 0.0
        self._seconds = 0.0

    def __call__(self, share: float = WATCHED) -> T:
        """Return the result, computed again if that fits into this share of the time."""
        began = perf_counter()
        if self._found is None or began >= self._looked_at + self._seconds / share:
            self._found = self._look()
            self._looked_at = perf_counter()
            self._seconds = self._looked_at - began
        return self._found
