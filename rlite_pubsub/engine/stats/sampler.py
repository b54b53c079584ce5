"""Figures that must be sampled again and again: rates, and the peak of memory.

Call `sample(now)` about ten times a second; a rate is the mean of the last sixteen samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rlite_pubsub.engine.counters import Stats
from rlite_pubsub.engine.stats.process import resident_bytes

SAMPLES = 16


class Rate:
    """The rate at which one counter grows."""

    def __init__(self, counter: Callable[[], int]) -> None:
        self._counter = counter
        self._last_count = counter()
        self._last_time: float | None = None
        self._per_second: deque[float] = deque(maxlen=SAMPLES)

    def sample(self, now: float) -> None:
        """Take a sample of the counter."""
        count = self._counter()
        if self._last_time is not None and now > self._last_time:
            growth = max(count - self._last_count, 0)  # CONFIG RESETSTAT resets counters
            self._per_second.append(growth / (now - self._last_time))
        self._last_time = now
        self._last_count = count

    @property
    def per_second(self) -> float:
        """The mean of the last samples; missing samples of a window that is not full yet count as zero."""
        return sum(self._per_second) / SAMPLES


class Sampler:
    """The rates and peaks of one engine."""

    def __init__(self, stats: Stats) -> None:
        self.paused = False  # DEBUG PAUSE-CRON
        self.commands = Rate(lambda: stats.commands_processed)
        self.input_bytes = Rate(lambda: stats.input_bytes)
        self.output_bytes = Rate(lambda: stats.outboxes.output_bytes)
        self.startup_bytes = self.resident_bytes = self.peak_bytes = resident_bytes()

    def sample(self, now: float) -> None:
        """Take a sample of everything."""
        if self.paused:
            return
        self.commands.sample(now)
        self.input_bytes.sample(now)
        self.output_bytes.sample(now)
        self.measure_memory()

    def measure_memory(self) -> int:
        """Return how much memory this process has now, and note the peak."""
        self.resident_bytes = resident_bytes()
        self.peak_bytes = max(self.peak_bytes, self.resident_bytes)
        return self.resident_bytes
