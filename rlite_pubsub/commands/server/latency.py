"""LATENCY: the spikes that engine/stats/latency.py has noted, and how long the calls of each command took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.table import TABLE, Arg, Command, command, container
from rlite_pubsub.engine.workers import merging
from rlite_pubsub.protocol.errors import CommandError, c_string
from rlite_pubsub.protocol.replies import Map, Reply, Verbatim

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.stats.latency import LatencyMonitor, Spikes


# -- A row of bars in plain text, each with its label written downwards beneath it.

_TOPS = "_o#"
_COLUMNS = 80
_ROWS = 4


def sparkline(samples: Sequence[tuple[int, str]]) -> str:
    """(value, label) from left to right; the lowest is the smallest bar, the highest the full four rows."""
    values = [value for value, _ in samples]
    low, high = min(values), max(values)
    parts = [_part(samples[start : start + _COLUMNS], low, high) for start in range(0, len(samples), _COLUMNS)]
    return "\n".join(parts)


def _part(samples: Sequence[tuple[int, str]], low: int, high: int) -> str:
    steps = len(_TOPS) * _ROWS
    heights = [min((value - low) * steps // ((high - low) or 1), steps - 1) for value, _ in samples]
    lines = []
    for row in reversed(range(_ROWS)):
        tops = [height - row * len(_TOPS) for height in heights]
        lines.append("".join(" " if top < 0 else _TOPS[top] if top < len(_TOPS) else "|" for top in tops))
    lines.append(" " * len(samples))
    depth = max(len(label) for _, label in samples)
    lines += ["".join(label[row] if row < len(label) else " " for _, label in samples) for row in range(depth)]
    return "".join(f"{line}\n" for line in lines)


# -- LATENCY DOCTOR: what the spikes were, and what one can do about each kind.

_ADVICE = {
    b"command": (
        "Commands took long: SLOWLOG GET names them. Most often they are large messages, or PSUBSCRIBE and PUBSUB "
        "CHANNELS with many names.",
    ),
    b"fast-command": (
        "Commands that do very little took long, so the process did not get its CPU: look for other work on this "
        "machine, a noisy neighbour on its host, or swapping.",
    ),
}
_ELSEWHERE = "The server waited for its disk: put --dir on a local, faster or less busy one."


def diagnosis(monitor: LatencyMonitor, slowlog_slower_than_us: int, now: int) -> str:
    """Return a report for people."""
    if not monitor.events and not monitor.threshold_ms:
        return (
            "Latency is not being watched. CONFIG SET latency-monitor-threshold <milliseconds> starts it; what takes "
            "that long or longer is then noted.\n"
        )
    if not monitor.events:
        return f"All is well: nothing has taken {monitor.threshold_ms} ms or longer since this was last reset.\n"
    lines = ["Something took too long here:\n"]
    advice: dict[str, None] = {}
    for number, (event, spikes) in enumerate(monitor.events.items(), 1):
        lines.append(f"{number}. {event.decode('latin-1')}: {_summary(spikes, now)}")
        advice.update(dict.fromkeys(_advice(event, monitor.threshold_ms, slowlog_slower_than_us)))
    lines.append("\nWhat may help:\n")
    lines += [f"- {one}" for one in advice]
    return "\n".join(lines) + "\n"


def _advice(event: bytes, threshold_ms: int, slowlog_slower_than_us: int) -> Sequence[str]:
    advice = list(_ADVICE.get(event, (_ELSEWHERE,)))
    if event == b"command":
        if slowlog_slower_than_us < 0:
            advice.append(f"The slow log is off: CONFIG SET slowlog-log-slower-than {threshold_ms * 1000} turns it on.")
        elif slowlog_slower_than_us > threshold_ms * 1000:
            advice.append(
                "The slow log keeps only what is slower still: CONFIG SET slowlog-log-slower-than "
                f"{threshold_ms * 1000} makes it keep all that is noted here."
            )
    return advice


def _summary(spikes: Spikes, now: int) -> str:
    durations = [ms for _, ms in spikes.samples]
    average = sum(durations) // len(durations)
    deviation = sum(abs(ms - average) for ms in durations) // len(durations)
    period = max(now - spikes.samples[0][0], 1) / len(durations)
    return (
        f"{len(durations)} spikes, {average} ms on average (mean deviation {deviation} ms), one every {period:.2f} s; "
        f"the worst ever took {spikes.worst_ms} ms."
    )


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
    engine = session.engine
    slower_than_us = engine.settings["slowlog-log-slower-than"]
    return Verbatim(diagnosis(engine.latency, slower_than_us, int(engine.clock())).encode())


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
    spikes = session.engine.latency.events.get(args[2])
    if spikes is None:
        raise CommandError(b"ERR No samples available for event '%b'" % c_string(args[2]))
    now = int(session.engine.clock())
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
            stat = session.engine.stats.commands.get(one)
            if stat is not None and stat.histogram is not None:
                steps = Map(stat.histogram.cumulative())
                reply.append((one.name, {b"calls": stat.histogram.total, b"histogram_usec": steps}))
    return reply


@command(
    "latency|history",
    merge=merging.by_time,
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
    spikes = session.engine.latency.events.get(args[2])
    return list(spikes.samples) if spikes is not None else []


@command(
    "latency|latest",
    merge=merging.latest,
    arity=2,
    flags=_FLAGS,
    group="server",
    since="2.8.13",
    summary="Return the latest latency samples for all events.",
    complexity="O(1)",
    tips=_TIPS,
)
def latency_latest(session: CommandSession, args: list[bytes]) -> Reply:
    events = session.engine.latency.events
    return [[event, *spikes.samples[-1], spikes.worst_ms] for event, spikes in events.items()]


@command(
    "latency|reset",
    merge=merging.total,
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
    forget = session.engine.latency.forget
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
