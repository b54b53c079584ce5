"""INFO's sections on single commands and errors: Commandstats, Errorstats, Latencystats."""

from __future__ import annotations

from collections.abc import Iterator

from rlite_pubsub.commands.instance import Instance

Fields = Iterator[tuple[str, object]]

_UNSAFE = str.maketrans("#:\n\r", "____")
"""What would look like a field or a section in a name that a client has made up."""


def command_stats(instance: Instance) -> Fields:
    """Calls of each command, and how many were refused or failed."""
    for command, stat in instance.stats.commands.items():
        if stat.calls or stat.failed or stat.rejected:
            mean_us = stat.microseconds / stat.calls if stat.calls else 0
            yield (
                f"cmdstat_{_safe(command.name)}",
                f"calls={stat.calls},usec={stat.microseconds},usec_per_call={mean_us:.2f},"
                f"rejected_calls={stat.rejected},failed_calls={stat.failed}",
            )


def error_stats(instance: Instance) -> Fields:
    """Error replies by their first word."""
    for prefix, count in sorted(instance.stats.errors.items()):
        yield f"errorstat_{_safe(prefix)}", f"count={count}"


def latency_stats(instance: Instance) -> Fields:
    """Percentiles of the times of each command, in microseconds."""
    if not instance.settings["latency-tracking"]:
        return
    percentiles = instance.settings["latency-tracking-info-percentiles"]
    for command, stat in instance.stats.commands.items():
        histogram = stat.histogram
        if histogram is not None:
            values = (f"p{_trimmed(percent)}={histogram.percentile(percent):.3f}" for percent in percentiles)
            yield f"latency_percentiles_usec_{_safe(command.name)}", ",".join(values)


def _trimmed(number: float) -> str:
    return f"{number:f}".rstrip("0").rstrip(".")


def _safe(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape").translate(_UNSAFE)
