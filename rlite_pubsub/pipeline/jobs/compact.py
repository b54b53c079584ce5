"""`compact`: many small blocks of the cold store become few large ones, while servers run.

Law: read and proved -> one block written, proved and named -> swapped in one transaction of the server's. The old files
stay for their grace. Whatever dies in between leaves a file that nobody refers to, which the next compaction replaces:
it has the same name.

Blocks are concatenated within a task, in order, without a shuffle. What is deleted or trimmed of them stays in them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rlite_pubsub.cold import manifest, paths
from rlite_pubsub.cold.errors import BlockDamaged
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.pipeline.cold_topic import ColdTopic, cold_topic, place_of
from rlite_pubsub.pipeline.jobs.declared import count, option, size_bytes
from rlite_pubsub.pipeline.jobs.outcome import Outcome, summed
from rlite_pubsub.pipeline.jobs.selection import TopicOptions, shown
from rlite_pubsub.pipeline.spark.progress import Progress
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_HELD_GROUPS = 4
_ENOUGH_ENTRIES = 250_000
"""To be a block of its own."""


@dataclass(frozen=True, kw_only=True)
class Compact(TopicOptions):
    """Which blocks are merged, and how large the new ones are."""

    target_bytes: int = option(
        "about how many bytes the file of a new block has at most", default=128 << 20, read=size_bytes, metavar="SIZE"
    )
    target_entries: int = option("the most entries of a new block", default=10_000_000, read=count, metavar="COUNT")
    min_tasks: int = option(
        "the least number of tasks, each with a block of its own, if there is enough for all",
        default=2,
        read=count,
        metavar="COUNT",
    )


class CompactRun(NamedTuple):
    """Blocks side by side that become one."""

    place: Place
    origin: Origin
    blocks: tuple[BlockInfo, ...]

    @property
    def path(self) -> str:
        return paths.block_of(self.origin.topic, self.origin.number, self.blocks[0].first, self.blocks[-1].last)

    @property
    def entries(self) -> int:
        return sum(one.count for one in self.blocks)

    def about(self) -> dict[str, object]:
        first, last = self.blocks[0].first, self.blocks[-1].last
        return {
            "action": "merge",
            "topic": shown(self.origin.topic),
            "blocks": len(self.blocks),
            "from": entry_ids.text(first).decode(),
            "to": entry_ids.text(last).decode(),
            "rows": self.entries,
            "bytes": sum(one.file_bytes for one in self.blocks),
        }


def runs_of(place: Place, name: bytes, cold: ColdTopic, options: Compact) -> list[CompactRun]:
    """Return the work for a topic."""
    origin = Origin(cold.store, name, cold.number)
    runs: list[CompactRun] = []
    taken: list[BlockInfo] = []
    for each in (*(one for one in cold.blocks if one.last <= cold.sealed_to), None):
        files = sum(one.file_bytes for one in taken)
        entries = sum(one.count for one in taken)
        if each is None or (
            taken
            and (files + each.file_bytes > options.target_bytes or entries + each.count > options.target_entries)
        ):
            runs.append(CompactRun(place, origin, tuple(taken)))
            taken = []
        if each is not None:
            taken.append(each)
    while runs and len(runs) < options.min_tasks:
        largest = max(runs, key=lambda run: run.entries)
        if largest.entries < 2 * _ENOUGH_ENTRIES or len(largest.blocks) < 2:
            break
        half = len(largest.blocks) // 2
        at = runs.index(largest)
        runs[at : at + 1] = [
            CompactRun(place, origin, largest.blocks[:half]),
            CompactRun(place, origin, largest.blocks[half:]),
        ]
    return [run for run in runs if len(run.blocks) > 1]


def merge(run: CompactRun, sealed_ms: int) -> BlockInfo:
    """Write the block that has all entries of a run. Raises ColdError where one of them cannot be proved."""
    from rlite_pubsub.cold import block

    for one, other in pairwise(run.blocks):
        if one.last >= other.first:
            raise BlockDamaged(other.path, f"it does not follow {one.path}")
    made = block.write(run.place, run.path, run.origin, _batches(run), sealed_ms)
    wanted = run.entries, sum(one.wire_bytes for one in run.blocks)
    if (made.count, made.wire_bytes) != wanted:
        raise BlockDamaged(made.path, f"it has {made.count} entries, and the blocks it is made of have {wanted[0]}")
    return made


def _batches(run: CompactRun) -> Iterator[pa.RecordBatch]:
    """Yield all entries, in as many as fill a row group: those of small blocks do not."""
    from rlite_pubsub.cold import block, columns

    held: list[pa.RecordBatch] = []
    for one in run.blocks:
        whole = block.complete(run.place, one)
        for number in range(len(whole.groups)):
            held.append(block.read_batch(run.place, whole, number))
            if sum(batch.num_rows for batch in held) >= _HELD_GROUPS * columns.GROUP_ROWS:
                *full, rest = _in_groups(held)
                yield from full
                held = [rest]
    yield from _in_groups(held)


def _in_groups(batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    import pyarrow as pa

    from rlite_pubsub.cold.columns import GROUP_ROWS

    joined = pa.concat_batches(batches)
    return [joined.slice(start, GROUP_ROWS) for start in range(0, joined.num_rows, GROUP_ROWS)]


def swap(client: Any, run: CompactRun, made: BlockInfo) -> bool:
    """Have the server use the new block; False if it does already. Raises FileNotFoundError where it is gone: after a
    day it would count as a stray (cold/survey.py)."""
    run.place.size(made.path)
    firsts = [entry_ids.text(one.first) for one in run.blocks]
    groups: list[bytes | int] = []
    for group in made.groups:
        groups += [entry_ids.text(group.first), entry_ids.text(group.last), group.count, group.wire_bytes]
    return bool(
        client.execute_command(
            "TOPIC.SWAP",
            run.origin.topic,
            run.origin.number,
            len(firsts),
            *firsts,
            made.path,
            made.file_bytes,
            made.sha256.hex(),
            made.sealed_ms,
            *groups,
        )
    )


def mirror(client: Any, place: Place, name: bytes) -> None:
    """Bring a topic's manifest up to what its server says."""
    cold = cold_topic(client, name)
    if not cold.blocks:
        return

    def blocks() -> tuple[BlockInfo, ...]:
        now = cold_topic(client, name)
        return now.blocks if now.number == cold.number else ()

    origin = Origin(cold.store, name, cold.number)
    manifest.keep(
        place, origin, blocks, is_kept_empty=True, make_safe=lambda: client.execute_command("TOPIC.SYNC")
    )


def plan(options: Compact) -> Outcome:
    """Return what would be merged."""
    rows = [run.about() for run in _all_runs(options.connect(), options)]
    return Outcome("compact", rows, summed(rows, "blocks", "rows", "bytes"))


def _all_runs(client: Any, options: Compact) -> list[CompactRun]:
    found: list[CompactRun] = []
    for name in options.names(client).values():
        cold = cold_topic(client, name)
        if len(cold.blocks) > 1:
            found += runs_of(place_of(client, cold, options.cold_path), name, cold, options)
    return found


def run(spark: SparkSession, options: Compact, progress: Progress | None = None) -> Outcome:
    """Merge and swap, run by run: what is done is done, whatever becomes of the others."""
    client = options.connect()
    runs = _all_runs(client, options)
    rows: list[dict[str, object]] = []
    now_ms = time.time_ns() // 1_000_000
    with (progress or Progress()).spark("compact", spark):
        for place, made in merged(spark, runs, now_ms):
            one = runs[place]
            is_new = swap(client, one, made)
            rows.append({**one.about(), "action": "merged" if is_new else "was there", "into": made.path})
            rows[-1]["bytes after"] = made.file_bytes
    for at, name in {one.origin.topic: (one.place, one.origin.topic) for one in runs}.values():
        mirror(client, at, name)
    return Outcome("compact", rows, summed(rows, "blocks", "rows", "bytes", "bytes after"))


def merged(spark: SparkSession, runs: Sequence[CompactRun], sealed_ms: int) -> Iterator[tuple[int, BlockInfo]]:
    """(place of the run, its block), in order, each as soon as it is there."""
    if not runs:
        return
    tasks = spark.sparkContext.parallelize(list(enumerate(runs)), len(runs))
    yield from tasks.map(lambda task: (task[0], merge(task[1], sealed_ms))).toLocalIterator(prefetchPartitions=True)
