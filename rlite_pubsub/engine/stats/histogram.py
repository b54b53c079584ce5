"""How long calls took: a histogram of microseconds with two significant digits, whatever the magnitude.

It is an HDR histogram of nanoseconds from 1 to 2**30, which is what Redis keeps: 256 steps of one nanosecond, then 128
steps for each doubling. So LATENCY HISTOGRAM and INFO latencystats show the same steps. What is slower than one second
counts as one second.
"""

from __future__ import annotations

_SLOWEST_NS = 1_000_000_000
_FIRST_LEVEL = 10
"""LATENCY HISTOGRAM begins at 2**10 ns, about one microsecond."""
_LAST_LEVEL = 30


def _step_of(nanoseconds: int) -> int:
    """The number of the step in which a duration falls."""
    doublings = max(nanoseconds.bit_length() - 8, 0)
    return (doublings << 7) + (nanoseconds >> doublings)


def _step_of_us(microseconds: int) -> int:
    return _step_of(min(max(microseconds * 1000, 1), _SLOWEST_NS))


def _end_of(step: int) -> int:
    """The longest duration, in nanoseconds, that falls in a step."""
    doublings = max((step >> 7) - 1, 0)
    return ((step - (doublings << 7) + 1) << doublings) - 1


_STEPS_OF_US = [_step_of_us(microseconds) for microseconds in range(1024)]


class Histogram:
    """Counts of durations."""

    __slots__ = ("_counts", "total")

    def __init__(self) -> None:
        self.total = 0
        self._counts: dict[int, int] = {}  # by step

    def record(self, value_us: int, count: int = 1) -> None:
        """Count `count` calls that took `value_us` each."""
        step = _STEPS_OF_US[value_us] if 0 <= value_us < 1024 else _step_of_us(value_us)
        self._counts[step] = self._counts.get(step, 0) + count
        self.total += count

    def percentile(self, percent: float) -> float:
        """The duration in microseconds that `percent` of the calls did not exceed; 0 if there were none."""
        if not self.total:
            return 0.0
        wanted = max(int(min(percent, 100.0) / 100 * self.total + 0.5), 1)
        seen = 0
        step = 0
        for step in sorted(self._counts):
            seen += self._counts[step]
            if seen >= wanted:
                break
        if percent == 0.0:
            return (_end_of(step - 1) + 1) / 1000 if step else 0.0
        return _end_of(step) / 1000

    def cumulative(self) -> list[tuple[int, int]]:
        """(microseconds, calls that took no longer) for each doubling from 1 us to 1 s in which calls were added."""
        levels: list[tuple[int, int]] = []
        steps = sorted(self._counts)
        position = seen = reported = 0
        for level in range(_FIRST_LEVEL, _LAST_LEVEL + 1):
            last_step = min(_step_of(1 << level), _step_of((1 << _LAST_LEVEL) - 1))
            while position < len(steps) and steps[position] <= last_step:
                seen += self._counts[steps[position]]
                position += 1
            if seen > reported:
                levels.append((_end_of(last_step) // 1000, seen))
                reported = seen
        return levels
