"""What INFO counts: calls, errors, connections, bytes. CONFIG RESETSTAT sets all of it back to nothing."""

from __future__ import annotations

from rlite_pubsub.engine.stats.histogram import Histogram
from rlite_pubsub.engine.table import Command
from rlite_pubsub.pubsub.pressure import Counts

MAX_ERROR_KINDS = 128
"""Error prefixes counted apart; a client can make up any, so there must be an end."""


class CommandStat:
    """One command's share."""

    __slots__ = ("calls", "failed", "histogram", "microseconds", "rejected")

    def __init__(self) -> None:
        self.calls = 0
        self.microseconds = 0
        self.rejected = 0
        self.failed = 0
        self.histogram: Histogram | None = None  # of microseconds


class Stats:
    """All counters of one instance."""

    def __init__(self) -> None:
        self.track_latency = True
        self.outboxes = Counts()
        self.reset()

    def reset(self) -> None:
        """Start again from nothing."""
        self.commands: dict[Command, CommandStat] = {}
        self.errors: dict[bytes, int] = {}  # prefix -> count
        self.total_errors = 0
        self.commands_processed = 0
        self.microseconds = 0  # of all commands that were timed one by one
        self.connections_received = 0
        self.rejected_connections = 0
        self.input_bytes = 0
        self.reads = 0
        self.query_limit_disconnections = 0
        self.keyspace_hits = 0
        self.keyspace_misses = 0
        self.expired_keys = 0
        self.outboxes.reset()

    def of(self, command: Command) -> CommandStat:
        """The counters of one command."""
        stat = self.commands.get(command)
        if stat is None:
            stat = self.commands[command] = CommandStat()
        return stat

    def count_call(self, command: Command, duration_us: int, failed: bool) -> None:
        """One call has ended."""
        self.commands_processed += 1
        self.microseconds += duration_us
        stat = self.commands.get(command) or self.of(command)
        stat.calls += 1
        stat.microseconds += duration_us
        if failed:
            stat.failed += 1
        if self.track_latency:
            if stat.histogram is None:
                stat.histogram = Histogram()
            stat.histogram.record(duration_us)

    def count_blocked(self, command: Command, duration_us: int) -> None:
        """A call has ended whose session waits now for what answers it."""
        self.commands_processed += 1
        self.microseconds += duration_us
        stat = self.commands.get(command) or self.of(command)
        stat.calls += 1
        stat.microseconds += duration_us

    def count_unblocked(self, command: Command, calls: int, duration_us: int, failed: bool) -> None:
        """They have been answered. As in Redis the whole duration is added, what was counted at first included."""
        stat = self.commands.get(command) or self.of(command)
        stat.microseconds += duration_us
        if failed:
            stat.failed += calls
        if self.track_latency:
            if stat.histogram is None:
                stat.histogram = Histogram()
            stat.histogram.record(duration_us // calls, calls)

    def count_calls(self, command: Command, calls: int, duration_us: int) -> None:
        """Several calls have ended that were timed together."""
        self.commands_processed += calls
        stat = self.commands.get(command) or self.of(command)
        stat.calls += calls
        stat.microseconds += duration_us
        if self.track_latency:
            if stat.histogram is None:
                stat.histogram = Histogram()
            stat.histogram.record(duration_us // calls, calls)

    def count_rejected(self, command: Command) -> None:
        """A request was refused before it was called."""
        self.of(command).rejected += 1

    def count_error(self, text: bytes) -> None:
        """An error reply was sent."""
        self.total_errors += 1
        prefix = text[:32].split(b" ", 1)[0] if b" " in text[:32] else b"ERR"
        if prefix in self.errors or len(self.errors) < MAX_ERROR_KINDS:
            self.errors[prefix] = self.errors.get(prefix, 0) + 1
