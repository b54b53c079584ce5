"""Latency spikes: for each kind of event, the last 160 seconds with an event of `latency-monitor-threshold` ms or
longer.

A threshold of 0 watches nothing. Within one second only the worst spike is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.table import Command

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings


MAX_SAMPLES: Final = 160

_NEVER: Final = 1 << 60


class Spikes:
    """The spikes of one kind of event."""

    __slots__ = ("samples", "worst_ms")

    def __init__(self) -> None:
        self.samples: deque[tuple[int, int]] = deque(maxlen=MAX_SAMPLES)  # (time in seconds, ms), oldest first
        self.worst_ms = 0

    def add(self, now: int, ms: int) -> None:
        """Add a spike."""
        self.worst_ms = max(self.worst_ms, ms)
        if self.samples and self.samples[-1][0] == now:
            ms = max(ms, self.samples.pop()[1])
        self.samples.append((now, ms))


class LatencyMonitor:
    """All spikes, by event."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self.events: dict[bytes, Spikes] = {}
        self.threshold_ms = 0
        self._threshold_us = _NEVER
        settings.follow(("latency-monitor-threshold",), self._configure)

    def _configure(self) -> None:
        self.threshold_ms = self._settings["latency-monitor-threshold"]
        self._threshold_us = self.threshold_ms * 1000 or _NEVER

    def note_command(self, command: Command, duration_us: int) -> None:
        """Note a command if it took too long."""
        if duration_us >= self._threshold_us:
            self.note(b"fast-command" if "fast" in command.flags else b"command", duration_us // 1000)

    def note(self, event: bytes, ms: int) -> None:
        """Note an event if it took too long."""
        if self.threshold_ms and ms >= self.threshold_ms:
            spikes = self.events.get(event)
            if spikes is None:
                spikes = self.events[event] = Spikes()
            spikes.add(int(self._clock()), ms)

    def forget(self, event: bytes | None = None) -> int:
        """Forget one kind of event (in any case of letters), or all; return how many kinds were forgotten."""
        doomed = [name for name in self.events if event is None or name.lower() == event.lower()]
        for name in doomed:
            del self.events[name]
        return len(doomed)
