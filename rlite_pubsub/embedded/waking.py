"""The ends of a wait: another thread of this process, or the time.

A thread is woken by a descriptor, to be polled along with others; a forked child closes its copies, for on Linux both
would be one counter. Without an event loop, what is to be done later is done by the next thread that waits or makes a
call.
"""

from __future__ import annotations

import heapq
import itertools
import os
import time
import weakref
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


_open: weakref.WeakSet[Wake] = weakref.WeakSet()


class Wake:
    """Set by any thread, cleared by the waiting one."""

    _reading = _writing = -1  # also if whatever interrupts the program comes while it is made

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            self._reading = self._writing = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:
            self._reading, self._writing = os.pipe()
            os.set_blocking(self._reading, False)
            os.set_blocking(self._writing, False)
        _open.add(self)

    def fileno(self) -> int:
        return self._reading

    def set(self) -> None:
        """End the wait, or the next one if nobody waits now."""
        try:
            os.write(self._writing, _ONE)
        except BlockingIOError:
            pass  # it is set already: the pipe holds no more
        except OSError:
            if self._writing >= 0:
                raise

    def clear(self) -> None:
        try:
            os.read(self._reading, 4096)
        except BlockingIOError:
            pass  # a wait can end without it

    def close(self) -> None:
        if self._reading < 0:
            return
        reading, writing = self._reading, self._writing
        self._reading = self._writing = -1
        _open.discard(self)
        os.close(reading)
        if writing != reading:
            os.close(writing)

    def __del__(self) -> None:
        self.close()


_ONE = (1).to_bytes(8, "little")


def _close_in_child() -> None:
    for wake in list(_open):
        wake.close()


os.register_at_fork(after_in_child=_close_in_child)
