"""The counters of INFO: calls, errors, connections, bytes. CONFIG RESETSTAT resets them all."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.engine.table import Command
from rlite_pubsub.pubsub.pressure import Counts

# -- How long calls took: a histogram of microseconds with two significant digits, whatever the magnitude. It is an HDR
# histogram of nanoseconds from 1 to 2**30, which is what Redis keeps: 256 steps of one nanosecond, then 128 steps for
# each doubling. So LATENCY HISTOGRAM and INFO latencystats show the same steps. What is slower than one second counts
# as one second.

_SLOWEST_NS: Final = 1_000_000_000
_FIRST_LEVEL: Final = 10
"""LATENCY HISTOGRAM begins at 2**10 ns, about one microsecond."""
_LAST_LEVEL: Final = 30


def _step_of(nanoseconds: int) -> int:
    """Return the number of the step that a duration falls in."""
    doublings = max(nanoseconds.bit_length() - 8, 0)
    return (doublings << 7) + (nanoseconds >> doublings)


def _step_of_us(microseconds: int) -> int:
    return _step_of(min(max(microseconds * 1000, 1), _SLOWEST_NS))


def _end_of(step: int) -> int:
    """Return the longest duration, in nanoseconds, that falls in a step."""
    doublings = max((step >> 7) - 1, 0)
    return ((step - (doublings << 7) + 1) << doublings) - 1


_QUICK_US: Final = 32
_FINE_US: Final = 1024
_STEPS_OF_US: Final = [_step_of_us(microseconds) for microseconds in range(_FINE_US)]


class Histogram:
    """Counts of durations."""

    __slots__ = ("counts", "quick", "total")

    def __init__(self) -> None:
        self.total = 0
        self.quick = [0] * _QUICK_US  # by microseconds, as most are: not yet in `counts`
        self.counts: dict[int, int] = {}  # by step

    def record(self, value_us: int, count: int = 1) -> None:
        """Count `count` calls that took `value_us` each."""
        self.total += count
        if 0 <= value_us < _QUICK_US:
            self.quick[value_us] += count
            return
        step = _STEPS_OF_US[value_us] if 0 <= value_us < _FINE_US else _step_of_us(value_us)
        self.counts[step] = self.counts.get(step, 0) + count

    def percentile(self, percent: float) -> float:
        """Return the duration in microseconds that `percent` of the calls did not exceed; 0 if there were none."""
        if not self.total:
            return 0.0
        self._count_quick()
        wanted = max(int(min(percent, 100.0) / 100 * self.total + 0.5), 1)
        seen = 0
        step = 0
        for step in sorted(self.counts):
            seen += self.counts[step]
            if seen >= wanted:
                break
        if percent == 0.0:
            return (_end_of(step - 1) + 1) / 1000 if step else 0.0
        return _end_of(step) / 1000

    def cumulative(self) -> list[tuple[int, int]]:
        """Return (microseconds, calls that took no longer) for each doubling from 1 us to 1 s in which calls were
        added."""
        self._count_quick()
        levels: list[tuple[int, int]] = []
        steps = sorted(self.counts)
        position = seen = reported = 0
        for level in range(_FIRST_LEVEL, _LAST_LEVEL + 1):
            last_step = min(_step_of(1 << level), _step_of((1 << _LAST_LEVEL) - 1))
            while position < len(steps) and steps[position] <= last_step:
                seen += self.counts[steps[position]]
                position += 1
            if seen > reported:
                levels.append((_end_of(last_step) // 1000, seen))
                reported = seen
        return levels

    def _count_quick(self) -> None:
        for microseconds, count in enumerate(self.quick):
            if count:
                step = _STEPS_OF_US[microseconds]
                self.counts[step] = self.counts.get(step, 0) + count
                self.quick[microseconds] = 0


MAX_ERROR_KINDS: Final = 128
"""Error prefixes counted apart; a client can make up any, so there must be an end."""


class CommandStat:
    """The counters of one command."""

    __slots__ = ("calls", "failed", "histogram", "microseconds", "rejected")

    def __init__(self) -> None:
        self.calls = 0
        self.microseconds = 0
        self.rejected = 0
        self.failed = 0
        self.histogram: Histogram | None = None  # of microseconds

    def begin_histogram(self) -> Histogram:
        """Keep durations from now on, and return the histogram."""
        self.histogram = Histogram()
        return self.histogram


class Stats:
    """All counters of one engine."""

    def __init__(self, track_latency: bool = True) -> None:
        """`track_latency`: make histograms of how long calls take."""
        self.track_latency = track_latency
        self.outboxes = Counts()
        self.reset()

    def track(self, wanted: bool) -> None:
        """Turn histograms of durations on or off."""
        self.track_latency = wanted

    def reset(self) -> None:
        """Reset all counters."""
        self.commands: dict[Command, CommandStat] = {}
        self.errors: dict[bytes, int] = {}  # prefix -> count
        self.total_errors = 0
        self.commands_processed = 0
        self.microseconds = 0  # of all commands that were timed one by one
        self.connections_received = 0
        self.rejected_connections = 0
        self.input_bytes = 0
        self.reads = 0
        self.keyspace_hits = 0
        self.keyspace_misses = 0
        self.expired_keys = 0
        self.expired_fields = 0
        self.evicted_keys = 0
        self.eviction_exceeded_s = 0.0
        self.sync_full = 0
        self.sync_partial_ok = 0
        self.sync_partial_err = 0
        self.unexpected_error_replies = 0  # to the master
        self.outboxes.reset()

    def of(self, command: Command) -> CommandStat:
        """Return the counters of one command."""
        stat = self.commands.get(command)
        if stat is None:
            stat = self.commands[command] = CommandStat()
        return stat

    def count_call(self, command: Command, duration_us: int, failed: bool) -> None:
        """Count one finished call."""
        self.commands_processed += 1
        self.microseconds += duration_us
        stat = self.commands.get(command) or self.of(command)
        stat.calls += 1
        stat.microseconds += duration_us
        if failed:
            stat.failed += 1
        if self.track_latency:
            histogram = stat.histogram or stat.begin_histogram()
            if 0 <= duration_us < _QUICK_US:  # as `record`, without the call
                histogram.quick[duration_us] += 1
                histogram.total += 1
            elif 0 <= duration_us < _FINE_US:
                step = _STEPS_OF_US[duration_us]
                histogram.counts[step] = histogram.counts.get(step, 0) + 1
                histogram.total += 1
            else:
                histogram.record(duration_us)

    def count_blocked(self, command: Command, duration_us: int) -> None:
        """Count a call whose session now waits for its answer."""
        self.commands_processed += 1
        self.microseconds += duration_us
        stat = self.commands.get(command) or self.of(command)
        stat.calls += 1
        stat.microseconds += duration_us

    def count_unblocked(self, command: Command, calls: int, duration_us: int, failed: bool) -> None:
        """Count calls that waited and have been answered. As in Redis the whole duration is added, including what was
        counted at first."""
        stat = self.commands.get(command) or self.of(command)
        stat.microseconds += duration_us
        if failed:
            stat.failed += calls
        if self.track_latency:
            (stat.histogram or stat.begin_histogram()).record(duration_us // calls, calls)

    def count_calls(self, command: Command, calls: int, duration_us: int) -> None:
        """Count several calls that were timed together."""
        self.commands_processed += calls
        stat = self.commands.get(command) or self.of(command)
        stat.calls += calls
        stat.microseconds += duration_us
        if self.track_latency:
            histogram, each_us = stat.histogram or stat.begin_histogram(), duration_us // calls
            if 0 <= each_us < _QUICK_US:
                histogram.quick[each_us] += calls
                histogram.total += calls
            elif 0 <= each_us < _FINE_US:
                step = _STEPS_OF_US[each_us]
                histogram.counts[step] = histogram.counts.get(step, 0) + calls
                histogram.total += calls
            else:
                histogram.record(each_us, calls)

    def count_rejected(self, command: Command) -> None:
        """Count a request that was refused before it was called."""
        self.of(command).rejected += 1

    def count_error(self, text: bytes) -> None:
        """Count an error reply."""
        self.total_errors += 1
        prefix = text[:32].split(b" ", 1)[0] if b" " in text[:32] else b"ERR"
        if prefix in self.errors or len(self.errors) < MAX_ERROR_KINDS:
            self.errors[prefix] = self.errors.get(prefix, 0) + 1
