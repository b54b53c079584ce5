"""An alarm: it rings at or before the time that it was set for last, and then is set again.

A loop's timers cannot be taken back, so they must not gather where an alarm is set again and again: one that was set
for a later time stays the one for that time when an earlier one has come and gone, and times that are far off share
those of whole seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import floor
from typing import Final, TypeAlias

CallLater: TypeAlias = Callable[[float, Callable[[], None]], object]
"""Schedules a call in this many seconds, in a turn of its own, with or without an event loop."""
MAX_TIMER_SECONDS: Final = 3600.0
"""A later end is looked at again then."""
_FAR_SECONDS: Final = 1.0
"""A time that is further off is looked at again at the beginning of its second."""


class Alarm:
    """Timers for one purpose."""

    def __init__(self, stopwatch: Callable[[], float], call_later: CallLater, ring: Callable[[], None]) -> None:
        """`ring` is called in a turn of its own; if it finds that nothing is due yet, it sets the alarm again."""
        self.at: float | None = None
        """When it rings next; None: it is not set."""
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._ring = ring
        self._timers: list[float] = []  # those that are set, the next one last

    def set(self, at: float) -> None:
        """Let it ring at or before this time, by the stopwatch."""
        if self.at is not None and self.at <= at:
            return
        now = self._stopwatch()
        seconds = min(max(at - now, 0.0), MAX_TIMER_SECONDS)
        at = now + seconds
        if seconds > _FAR_SECONDS:
            at = float(floor(at))
            if self.at is not None and self.at <= at:
                return
        self._timers.append(at)
        self.at = at
        on_timer: Callable[[], None] = partial(self._on_timer, at)
        self._call_later(at - now, on_timer)

    def _on_timer(self, at: float) -> None:
        timers = self._timers
        timers.remove(at)
        self.at = timers[-1] if timers else None
        self._ring()
