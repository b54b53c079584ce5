"""`replay`: entries of some time, or that match, into another topic or another server, under the ids that they have.

Promises: each entry arrives once and in order, whatever is killed; a replay that is started again goes on where the
target ends. It is done in steps, each of which is there as a whole or not at all; between them it waits as `rate` says.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rlite_pubsub.pipeline.connection import connect
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.jobs.declared import count, option
from rlite_pubsub.pipeline.jobs.outcome import Outcome, summed
from rlite_pubsub.pipeline.jobs.selection import Filtered, SelectedPart
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.spark.progress import Done, Progress
from rlite_pubsub.pipeline.topics import extent, marks
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEP_ENTRIES = 1_000_000
_RATED_STEP_S = 2
"""With a rate a step is no more than what may be done in so long."""
_LONGEST_STEPS = 4096


@dataclass(frozen=True, kw_only=True)
class Replay(Filtered):
    """What is replayed to where, and how fast."""

    to: str | None = option("the target topic, if one topic is replayed", default=None, metavar="TOPIC")
    prefix: str = option("a prefix for the names of the target topics, if several are replayed", default="")
    to_url: str | None = option("the target's server (default: the same)", default=None, is_secret=True, metavar="URL")
    to_password_file: str | None = option("a file that holds its password", default=None, metavar="FILE")
    where: str | None = option(
        "only entries for which this SQL is true, of topic, id, ms, seq, timestamp, key, value, headers, and --fields",
        default=None,
        metavar="SQL",
    )
    rate: int | None = option("the most entries per second", default=None, read=count, metavar="COUNT")

    @property
    def said(self) -> tuple[str, str | None]:
        return "where", self.where

    def written(self) -> dict[str, str]:
        """Return the target's server, as options of the sink."""
        if self.to_url is None:
            return {name: value for name, value in self.told().items() if name != "coldPath"}
        said = {"url": self.to_url, "passwordFile": self.to_password_file}
        return {name: value for name, value in said.items() if value is not None}

    def target(self, part: SelectedPart) -> str:
        """Return the target of a topic. Raises OptionRefused if that is itself, or its name is not text."""
        topic = part.topic
        if self.to is None and topic.encode() != part.name:
            raise OptionRefused(f"topic {topic!r}: its name is not text; give --to")
        found = self.to if self.to is not None else self.prefix + topic
        if found == topic and self.to_url in (None, self.url):
            raise OptionRefused(f"topic {topic!r} would be replayed into itself: say to, prefix or to-url")
        return found


def _parts(options: Replay, client: Any) -> list[SelectedPart]:
    parts = options.parts(client)
    if options.to is not None and len(parts) != 1:
        raise OptionRefused(f"to: {len(parts)} topics cannot keep their ids in one; say prefix")
    return parts


def done_to(client: Any, to: Any, part: SelectedPart, target: str) -> Id | None:
    """The id that a replay before this one came to; None: nothing is there. Raises OptionRefused where what is there is
    something else, behind which these ids cannot be."""
    there = extent(to, target.encode())
    if there is None or there.last <= part.after:
        return None
    theirs = to.execute_command("XREVRANGE", target, "+", "-", "COUNT", 1)
    if theirs and entry_of(client, part.name, theirs[0][0]) == theirs[0]:
        return there.last
    raise OptionRefused(
        f"topic {target!r} ends at {entry_ids.text(there.last).decode()} with an entry that is not of {part.topic!r}: "
        f"ids from {entry_ids.text(part.after).decode()} on cannot be put after it"
    )


def entry_of(client: Any, name: bytes, entry_id: bytes) -> Any:
    """One entry, or None."""
    found = client.execute_command("XRANGE", name, entry_id, entry_id)
    return found[0] if found else None


def plan(options: Replay, spark: SparkSession | None = None) -> Outcome:
    """Return what would be read, and what is there already; and, with a session, how much of it matches."""
    client, to = options.connect(), connect(SourceOptions.of(options.written()))
    rows = []
    for part in _parts(options, client):
        target = options.target(part)
        before = done_to(client, to, part, target)
        row = {**part.about("read"), "to topic": target}
        if before is not None:
            left = marks(client, part.name, before, part.upto, STEP_ENTRIES).entries if before < part.upto else 0
            row |= {"goes on behind": entry_ids.text(before).decode(), "rows": left}
        if spark is not None and part.entries:
            after = part.after if before is None else before
            row["matching"] = _between(options, part, after, part.upto).matching(spark).count()
        rows.append(row)
    return Outcome("replay", rows, summed(rows, "blocks", "rows", "bytes", *(["matching"] if spark else [])))


def run(spark: SparkSession, options: Replay, progress: Progress | None = None) -> Outcome:
    """Topic after topic, step after step."""
    client, to = options.connect(), connect(SourceOptions.of(options.written()))
    rows: list[dict[str, object]] = []
    for part in _parts(options, client):
        target = options.target(part)
        before = done_to(client, to, part, target)
        added = _added(to, target)
        after = part.after if before is None else before
        steps = steps_of(client, part, after, options.rate)
        _replay(spark, options, part, target, after, steps, progress or Progress())
        rows.append({
            "topic": part.topic,
            "to topic": target,
            "read": sum(entries for _, entries in steps),
            "written": _added(to, target) - added,
            "resumed": before is not None,
        })  # fmt: skip
    return Outcome("replay", rows, summed(rows, "read", "written"))


def steps_of(client: Any, part: SelectedPart, after: Id, rate: int | None) -> list[tuple[Id, int]]:
    """(up to which id, how many entries) of each step."""
    if after >= part.upto:
        return []
    size = STEP_ENTRIES if rate is None else max(1, min(STEP_ENTRIES, rate * _RATED_STEP_S))
    size = max(size, part.entries // _LONGEST_STEPS)
    told = marks(client, part.name, after, part.upto, size)
    edges = [mark for mark in told.ids if told.last is not None and mark < told.last]
    counts = [told.step] * len(edges)
    if told.last is not None:
        edges.append(told.last)
        counts.append(told.entries - sum(counts))
    return list(zip(edges, counts, strict=True))


def _replay(
    spark: SparkSession,
    options: Replay,
    part: SelectedPart,
    target: str,
    after: Id,
    steps: list[tuple[Id, int]],
    progress: Progress,
) -> None:
    total = sum(entries for _, entries in steps)
    begun, done = time.monotonic(), 0
    with progress.bar(f"replay {part.topic}", lambda: Done(done, total, f"{done:,}/{total:,} entries")):
        for upto, entries in steps:
            frame = _between(options, part, after, upto).matching(spark).select("id", "headers")
            frame.write.format("rlite").options(**options.written()).option(
                "topic", target
            ).mode("append").save()
            after = upto
            done += entries
            if options.rate is not None:
                time.sleep(max(0.0, done / options.rate - (time.monotonic() - begun)))


@dataclass(frozen=True, kw_only=True)
class _Between(Replay):
    """The part of a replay that is between two ids of one topic."""

    after: Id
    upto: Id

    def asked(self) -> dict[str, str]:
        (topic,) = self.topics
        return self.told() | ({} if self.fields is None else {"fields": self.fields}) | {
            "subscribePattern": re.escape(topic),
            "startingOffsets": _offset(topic, self.after),
            "endingOffsets": _offset(topic, self.upto),
        }


def _between(options: Replay, part: SelectedPart, after: Id, upto: Id) -> _Between:
    said = {one.name: getattr(options, one.name) for one in fields(options)}
    return _Between(**said | {"topics": (part.topic,), "pattern": None, "after": after, "upto": upto})


def _offset(topic: str, entry_id: Id) -> str:
    return json.dumps({topic: entry_ids.text(entry_id).decode()})


def _added(client: Any, topic: str) -> int:
    """Return how many entries were ever added to a topic."""
    if extent(client, topic.encode()) is None:
        return 0
    told = client.execute_command("TOPIC.INFO", topic)
    return int(dict(zip(told[::2], told[1::2], strict=True))[b"entries-added"])
