"""LATENCY DOCTOR: what the spikes were, and what one can do about each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.stats.latency import LatencyMonitor, Spikes

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
    """A report for people."""
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
        f"{len(durations)} spikes, {average} ms on average (mean deviation {deviation} ms), one each {period:.2f} s; "
        f"the worst ever took {spikes.worst_ms} ms."
    )
