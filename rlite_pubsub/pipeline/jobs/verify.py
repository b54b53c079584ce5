"""`verify`: all blocks of topics, and what links them, in parallel: digests, counts, every entry decoded, the manifest.

What is wrong with one block is told with its name, and keeps nobody from looking at the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rlite_pubsub.cold import manifest
from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.pipeline.cold_topic import ColdTopic, cold_topic, place_of
from rlite_pubsub.pipeline.jobs.outcome import Outcome, summed
from rlite_pubsub.pipeline.jobs.selection import TopicOptions
from rlite_pubsub.pipeline.spark.progress import Progress
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS = 64


@dataclass(frozen=True, kw_only=True)
class Verify(TopicOptions):
    """The topics to verify."""


def problem_of(place: Place, origin: Origin, info: BlockInfo) -> str:
    """Return what is wrong with a block; empty if nothing is."""
    from rlite_pubsub.cold import block, footer

    try:
        block.verify(place, info)
        found = footer.known(place, info).origin
    except ColdError as failure:
        return f"{type(failure).__name__}: {failure.reason}"
    if (found.store, found.number) != (origin.store, origin.number):
        return f"ForeignBlock: it is of topic {found.number} of store {found.store}"
    return ""


def broken_links(place: Place, origin: Origin, cold: ColdTopic) -> Iterator[tuple[str, str]]:
    """(path, what is wrong) of neighbours that overlap, and of a manifest that says something else than the server."""
    for one, other in pairwise(cold.blocks):
        if one.last >= other.first:
            yield other.path, f"it begins before {one.path} ends"
    wanted = manifest.of(origin, cold.blocks)
    try:
        found = manifest.read(place, wanted.path)
    except ColdError as failure:
        yield failure.path, f"{type(failure).__name__}: {failure.reason}"
        return
    there = {known.path: known for known in found.blocks}
    for known in wanted.blocks:
        if there.pop(known.path, None) != known:
            yield wanted.path, f"it does not have {known.path} as the server does"
    if found.origin.store != origin.store:
        yield wanted.path, f"it is of store {found.origin.store}"


def _work(options: Verify, client: Any) -> list[tuple[str, Place, Origin, ColdTopic]]:
    found = []
    for text, name in options.names(client).items():
        cold = cold_topic(client, name)
        if cold.blocks:
            place = place_of(client, cold, options.cold_path)
            found.append((text, place, Origin(cold.store, name, cold.number), cold))
    return found


def plan(options: Verify) -> Outcome:
    """Return what would be read."""
    rows: list[dict[str, object]] = [
        {
            "action": "verify",
            "topic": text,
            "blocks": len(cold.blocks),
            "rows": sum(info.count for info in cold.blocks),
            "bytes": sum(info.file_bytes for info in cold.blocks),
        }
        for text, _, _, cold in _work(options, options.connect())
    ]
    return Outcome("verify", rows, summed(rows, "blocks", "rows", "bytes"))


def run(spark: SparkSession, options: Verify, progress: Progress | None = None) -> Outcome:
    """Look at all of them."""
    work = _work(options, options.connect())
    blocks = [(place, origin, info) for _, place, origin, cold in work for info in cold.blocks]
    problems: dict[str, str] = {}
    if blocks:
        tasks = spark.sparkContext.parallelize(blocks, min(len(blocks), _TASKS))
        with (progress or Progress()).spark("verify", spark):
            found = tasks.map(lambda task: (task[2].path, problem_of(*task))).collect()
        problems = {path: problem for path, problem in found if problem}
    rows: list[dict[str, object]] = []
    is_well = True
    for text, place, origin, cold in work:
        wrong = [(info.path, problems[info.path]) for info in cold.blocks if info.path in problems]
        wrong += broken_links(place, origin, cold)
        is_well = is_well and not wrong
        rows.append({
            "topic": text, "blocks": len(cold.blocks), "rows": sum(info.count for info in cold.blocks),
            "bytes": sum(info.file_bytes for info in cold.blocks), "wrong": len(wrong),
        })  # fmt: skip
        rows += [{"topic": text, "path": path, "problem": problem} for path, problem in wrong]
    return Outcome("verify", rows, summed(rows, "blocks", "rows", "bytes", "wrong"), is_well)
