"""The pace of background work that may have to hurry, so that what is due does not grow without bound.

The work is done in slices. Between two of them other turns come, for as long as the share that it may take of the time
leaves them. That share grows with how long what is left is overdue, as the effort of Redis's active expiry does. If
turns take long, so that a slice begins late, it may take longer, too: so the share is kept under any load, while a
request that waits for a turn waits no longer for a slice, unless turns are so long that it makes no difference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.waits.alarm import CallLater

SLICE_S = 0.002
"""How long a slice takes if it begins on time: a request that comes meanwhile waits so long."""
MOST_SLICE_S = 0.05
LONG_TURN_S = 0.01
"""If a slice begins so late, turns are long, and it takes as long as it must to keep its share."""
LEAST_SHARE, MOST_SHARE = 1 / 4, 2 / 3
"""The share of the time for what is due now, and for what has been overdue for `HURRIES_MS`."""
HURRIES_MS = 1000
LEAST_REST_S = 0.001
_EARLY_S = 0.0005
"""How early a timer may go off."""


class Pace:
    """Calls one piece of work again and again, as long as anything is left to do."""

    def __init__(
        self, work: Callable[[float], int | None], stopwatch: Callable[[], float], call_later: CallLater
    ) -> None:
        """`work` works for about so many seconds of the processor, and returns for how many ms what is left has been
        overdue; None: nothing is left. Without timers (`call_later`) only `go` goes on."""
        self._work = work
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._due: float | None = None  # when the next slice begins, if anything is left
        self._is_set = False  # a timer
        self._share = LEAST_SHARE

    def go(self) -> None:
        """Work for a slice, unless the next one is due later."""
        began = self._stopwatch()
        late_s = 0.0
        if self._due is not None:
            if began < self._due - _EARLY_S:
                return
            late_s = max(0.0, began - self._due)
        self._due = None  # if it fails, `go` tries again
        slice_s = SLICE_S + late_s * self._share / (1 - self._share)
        if late_s < LONG_TURN_S:
            slice_s = min(slice_s, max(late_s, 2 * SLICE_S))
        overdue_ms = self._work(min(slice_s, MOST_SLICE_S))
        if overdue_ms is None:
            return
        self._share = LEAST_SHARE + (MOST_SHARE - LEAST_SHARE) * min(max(overdue_ms, 0) / HURRIES_MS, 1.0)
        now = self._stopwatch()
        rest_s = max((now - began) * (1 - self._share) / self._share, LEAST_REST_S)
        self._due = now + rest_s
        self._set(rest_s)

    def _set(self, seconds: float) -> None:
        if not self._is_set:  # with two timers there would soon be many, and no rest
            self._is_set = True
            self._call_later(seconds, self._go_off)

    def _go_off(self) -> None:
        self._is_set = False
        if self._due is None:
            return
        left_s = self._due - self._stopwatch()
        if left_s > _EARLY_S:
            self._set(left_s)
        else:
            self.go()
