"""`plan`: what so much history takes: blocks, tasks, time. Computed from rates that were measured on this project's
development machine (2 cores, Java 17, PySpark 4.3, entries of 100 bytes).

A rate is of one core; n cores do n times as much, less what a task costs by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rlite_pubsub.pipeline.jobs.declared import count, option, size_bytes
from rlite_pubsub.pipeline.jobs.outcome import Outcome

TASK_S = 0.03
"""What a task costs beside its work."""
COMPRESSED = 0.19
"""Bytes of a block's file for one of its entries'."""
_TASKS_PER_CORE = 4
_MEASURED_BYTES = 100
"""Larger entries take as much longer as they are larger."""
_TB = 1_000_000_000_000


class WorkRate(NamedTuple):
    """How fast a kind of work is."""

    what: str
    entries_per_s: int
    """Of 100 bytes, on one core."""
    is_parallel: bool


RATES = (
    WorkRate("seal into blocks", 390_000, False),
    WorkRate("read blocks through the source", 1_300_000, True),
    WorkRate("read blocks as native Parquet", 1_900_000, True),
    WorkRate("count blocks as native Parquet", 5_500_000, True),
    WorkRate("compact blocks", 750_000, True),
    WorkRate("verify blocks", 2_000_000, True),
    WorkRate("read from one server", 1_000_000, False),
    WorkRate("write to one server, exactly once", 180_000, False),
    WorkRate("stats", 130_000, True),
)


def _tenths(word: str) -> float:
    """A number like 1 or 0.5"""
    found = float(word)
    if found <= 0:
        raise ValueError(f"{word!r} is not above 0")
    return found


@dataclass(frozen=True, kw_only=True)
class Sizing:
    """How much work there is, and on what machine."""

    terabytes: float = option("of entries, as they are sent", default=1.0, read=_tenths, metavar="NUMBER")
    entry_bytes: int = option("of an entry", default=100, read=size_bytes, metavar="SIZE")
    block_bytes: int = option(
        "of a block, before it is compressed (cold-block-size)", default=64 << 20, read=size_bytes, metavar="SIZE"
    )
    cores: int = option("of all executors", default=64, read=count)


def plan(options: Sizing) -> Outcome:
    """Plan without reading or asking anything."""
    total = round(options.terabytes * _TB)
    entries = total // options.entry_bytes
    blocks = -(-total // options.block_bytes)
    tasks = max(min(blocks, options.cores * _TASKS_PER_CORE), 1)
    waves = -(-tasks // options.cores)
    rows: list[dict[str, object]] = []
    for rate in RATES:
        each = rate.entries_per_s * min(1.0, _MEASURED_BYTES / options.entry_bytes)
        cores = options.cores if rate.is_parallel else 1
        seconds = entries / each / cores + (waves * TASK_S if rate.is_parallel else 0)
        rows.append({
            "what": rate.what, "tasks": tasks if rate.is_parallel else 1, "entries per s": round(each * cores),
            "time": duration(seconds), "seconds": round(seconds),
        })  # fmt: skip
    return Outcome(
        "plan",
        rows,
        {
            "entries": entries,
            "bytes": total,
            "blocks": blocks,
            "entries per block": entries // blocks,
            "bytes on disk": round(total * COMPRESSED),
            "cores": options.cores,
        },
    )


def duration(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
