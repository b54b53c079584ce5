"""Latency spikes: for each kind of event the last 160 seconds that had one of `latency-monitor-threshold` ms or longer.

A threshold of 0 watches nothing. Within one second only the worst spike is kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.stats.diagnosis import diagnosis
from rlite_pubsub.engine.stats.sparkline import sparkline
from rlite_pubsub.engine.table import TABLE, Arg, Command, command, container
from rlite_pubsub.protocol.errors import CommandError, c_string
from rlite_pubsub.protocol.replies import Map, Reply, Verbatim

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.settings.settings import Settings

MAX_SAMPLES = 160

_NEVER = 1 << 63


class Spikes:
    """The spikes of one kind of event."""

    __slots__ = ("samples", "worst_ms")

    def __init__(self) -> None:
        self.samples: deque[tuple[int, int]] = deque(maxlen=MAX_SAMPLES)  # (time in seconds, ms), oldest first
        self.worst_ms = 0

    def add(self, now: int, ms: int) -> None:
        """One more spike."""
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
        settings.on_change("latency-monitor-threshold", self._configure)
        self._configure()

    def _configure(self, _value: object = None) -> None:
        self.threshold_ms = self._settings["latency-monitor-threshold"]
        self._threshold_us = self.threshold_ms * 1000 or _NEVER

    def note_command(self, command: Command, duration_us: int) -> None:
        """A command has been executed: note it if that took too long."""
        if duration_us >= self._threshold_us:
            self.note(b"fast-command" if "fast" in command.flags else b"command", duration_us // 1000)

    def note(self, event: bytes, ms: int) -> None:
        """Something took `ms`: note it if that is too long."""
        if self.threshold_ms and ms >= self.threshold_ms:
            spikes = self.events.get(event)
            if spikes is None:
                spikes = self.events[event] = Spikes()
            spikes.add(int(self._clock()), ms)

    def forget(self, event: bytes | None = None) -> int:
        """Forget one kind of event (in any case of letters), or all; the number of kinds forgotten."""
        doomed = [name for name in self.events if event is None or name.lower() == event.lower()]
        for name in doomed:
            del self.events[name]
        return len(doomed)


# -- LATENCY

container(
    "latency",
    arity=-2,
    group="server",
    since="2.8.13",
    summary="A container for latency diagnostics commands",
    complexity="Depends on subcommand.",
)

_FLAGS = "admin noscript loading stale"
_TIPS = ("nondeterministic_output", "request_policy:all_nodes", "response_policy:special")


@command(
    "latency|doctor",
    arity=2,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    summary="Return a human readable latency analysis report.",
    complexity="O(1)",
    tips=_TIPS,
)
def latency_doctor(session: CommandSession, args: list[bytes]) -> Reply:
    instance = session.instance
    slower_than_us = instance.settings["slowlog-log-slower-than"]
    return Verbatim(diagnosis(instance.latency, slower_than_us, int(instance.clock())).encode())


@command(
    "latency|graph",
    arity=3,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    summary="Return a latency graph for the event.",
    complexity="O(1)",
    arguments=(Arg("event"),),
    tips=_TIPS,
)
def latency_graph(session: CommandSession, args: list[bytes]) -> Reply:
    spikes = session.instance.latency.events.get(args[2])
    if spikes is None:
        raise CommandError(b"ERR No samples available for event '%b'" % c_string(args[2]))
    now = int(session.instance.clock())
    durations = [ms for _, ms in spikes.samples]
    heading = (
        f"{args[2].decode('latin-1')} - high {max(durations)} ms, low {min(durations)} ms "
        f"(all time high {spikes.worst_ms} ms)\n{'-' * 80}\n"
    )
    graph = sparkline([(ms, _age(now - time)) for time, ms in spikes.samples])
    return Verbatim((heading + graph).encode("latin-1"))


def _age(seconds: int) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


@command(
    "latency|histogram",
    arity=-2,
    flags=_FLAGS,
    group="server",
    since="7.0.0",
    summary="Return the cumulative distribution of latencies of a subset of commands or all.",
    complexity="O(N) where N is the number of commands with latency information being retrieved.",
    arguments=(Arg("command", optional=True, multiple=True),),
    tips=_TIPS,
)
def latency_histogram(session: CommandSession, args: list[bytes]) -> Reply:
    if len(args) == 2:
        asked: list[Command] = list(TABLE.commands.values())
    else:
        asked = [found for found in map(TABLE.find_full, args[2:]) if found is not None]
    reply = Map()
    for parent in asked:
        for one in (parent, *parent.subcommands.values()):
            stat = session.instance.stats.commands.get(one)
            if stat is not None and stat.histogram is not None:
                steps = Map(stat.histogram.cumulative())
                reply.append((one.name, {b"calls": stat.histogram.total, b"histogram_usec": steps}))
    return reply


@command(
    "latency|history",
    arity=3,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    summary="Return timestamp-latency samples for the event.",
    complexity="O(1)",
    arguments=(Arg("event"),),
    tips=_TIPS,
)
def latency_history(session: CommandSession, args: list[bytes]) -> Reply:
    spikes = session.instance.latency.events.get(args[2])
    return list(spikes.samples) if spikes is not None else []


@command(
    "latency|latest",
    arity=2,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    summary="Return the latest latency samples for all events.",
    complexity="O(1)",
    tips=_TIPS,
)
def latency_latest(session: CommandSession, args: list[bytes]) -> Reply:
    events = session.instance.latency.events
    return [[event, *spikes.samples[-1], spikes.worst_ms] for event, spikes in events.items()]


@command(
    "latency|reset",
    arity=-2,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    summary="Reset latency data for one or more events.",
    complexity="O(1)",
    arguments=(Arg("event", optional=True, multiple=True),),
    tips=("request_policy:all_nodes", "response_policy:all_succeeded"),
)
def latency_reset(session: CommandSession, args: list[bytes]) -> Reply:
    forget = session.instance.latency.forget
    return forget() if len(args) == 2 else sum(forget(event) for event in args[2:])


helps(
    "latency",
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the specified command "
        "names.",
    "    If no commands are specified then all histograms are replied.",
    group="server",
    since="2.8.13",
    summary="Show helpful text about the different subcommands.",
)
