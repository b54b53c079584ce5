"""The last hour of a server, kept by the server itself, for pages that come later.

Law 11: nobody's turn is longer for it. A sample is taken every ten seconds by a timer of the gateway, and only where
HTTP is served; what is kept has a fixed size: a number for each field and sample.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Mapping
from math import isnan, nan

SECONDS = 10.0
KEPT = 360
FIELDS = (
    "ms",
    "messages_published",
    "messages_delivered",
    "entries_posted",
    "commands",
    "input_bytes",
    "output_bytes",
    "sessions",
    "connections",
    "subscribed_sessions",
    "channels",
    "patterns",
    "topics",
    "subscribers",
    "backlog_messages",
    "backlog_bytes",
    "spilled_bytes",
    "dropped_messages",
    "store_live_bytes",
    "store_free_bytes",
    "store_held_bytes",
    "store_disk_bytes",
    "disk_free_bytes",
    "memory_bytes",
    "loop_lag_ms",
)


class History:
    """The samples of the last hour of one server."""

    def __init__(self, sample: Callable[[float], Mapping[str, object]], worst_lag_s: Callable[[], float]) -> None:
        """`worst_lag_s`: how late the loop was at most since this was asked last."""
        self._sample = sample
        self._worst_lag_s = worst_lag_s
        self._columns = {name: array("d", [nan]) * KEPT for name in FIELDS}
        self._next = 0
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take a sample now and then, until `close`."""
        self._take()
        self._timer = loop.call_later(SECONDS, self.begin, loop)

    def close(self) -> None:
        """Take none any more."""
        if self._timer is not None:
            self._timer.cancel()

    def _take(self) -> None:
        found = self._sample(self._worst_lag_s())
        for name, column in self._columns.items():
            value = found.get(name)
            column[self._next] = float(value) if isinstance(value, int | float) else nan
        self._next = (self._next + 1) % KEPT
        self._count = min(self._count + 1, KEPT)

    def told(self) -> dict[str, list[float | None]]:
        """Return a list for each field, the oldest first; None where it was not known."""
        start = (self._next - self._count) % KEPT
        order = [(start + number) % KEPT for number in range(self._count)]
        return {name: [_known(column[at]) for at in order] for name, column in self._columns.items()}


def _known(value: float) -> float | None:
    return None if isnan(value) else int(value) if value == int(value) else value
