"""What is to be done later, where no event loop is: whoever waits does it, or whoever comes by."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable

_FOREVER = float("inf")


class Timers:
    """Callbacks by time. `are_due` and `next_s` may be asked without a lock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._serials = itertools.count()

    def add(self, seconds: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self._clock() + seconds, next(self._serials), callback))

    @property
    def are_due(self) -> bool:
        heap = self._heap
        return bool(heap) and heap[0][0] <= self._clock()

    def next_s(self) -> float:
        """Seconds until the next one is due."""
        heap = self._heap
        return max(0.0, heap[0][0] - self._clock()) if heap else _FOREVER

    def run(self) -> None:
        """Call all that are due."""
        while self.are_due:
            heapq.heappop(self._heap)[2]()
