"""`retain`: what is too old, too much, or matches, goes.

By age and size the beginning of a topic goes: whole blocks of the cold store as long as these do, then entries of the
hot log (`XTRIM`), a slice at a time, so that the server does other things between. By a predicate single entries go
(`XDEL`): Spark finds their ids, tasks delete them. All of it can be done again, and then does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlite_pubsub.pipeline.cold_topic import cold_topic
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.jobs.declared import count, moment_ms, option, size_bytes
from rlite_pubsub.pipeline.jobs.outcome import Outcome, summed
from rlite_pubsub.pipeline.jobs.selection import Filtered
from rlite_pubsub.pipeline.spark.progress import Progress
from rlite_pubsub.pipeline.topics import NOTHING, extent, marks
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SLICE = 20_000
"""Entries of one XTRIM."""
_BATCH = 1000
"""Ids of one XDEL."""


@dataclass(frozen=True, kw_only=True)
class Retain(Filtered):
    """What stays. With several limits all of them apply."""

    keep_since_ms: int | None = option(
        "remove entries before this time: 30d (ago), or 2026-11-18", default=None, read=moment_ms, word="keep-since",
        metavar="TIME",
    )  # fmt: skip
    keep_bytes: int | None = option(
        "keep this many of the newest bytes", default=None, read=size_bytes, metavar="SIZE"
    )
    keep_entries: int | None = option("keep this many of the newest entries", default=None, read=count, metavar="COUNT")
    delete: str | None = option(
        "remove entries for which this SQL is true, on topic, id, ms, seq, timestamp, key, value, headers, --fields",
        default=None,
        metavar="SQL",
    )
    exact: bool = option("also trim within a block, which then has to be read", default=False)

    @property
    def said(self) -> tuple[str, str | None]:
        return "delete", self.delete

    def check(self) -> None:
        """Raises OptionRefused."""
        if (self.keep_since_ms, self.keep_bytes, self.keep_entries, self.delete) == (None,) * 4:
            raise OptionRefused("say what stays: keep-since, keep-bytes or keep-entries; or what goes: delete")
        if self.delete is None and (self.since_ms, self.until_ms) != (None, None):
            raise OptionRefused("since and until say where delete looks; say keep-since")


def plan(options: Retain, spark: SparkSession | None = None) -> Outcome:
    """Return what age and size would remove, and where a predicate would be applied; with a session also to how many
    entries."""
    options.check()
    client = options.connect()
    rows: list[dict[str, object]] = []
    for text, name in options.names(client).items():
        cut = cut_of(client, name, options)
        there = extent(client, name) or NOTHING
        if cut > there.trimmed:
            gone = marks(client, name, there.trimmed, cut, _SLICE).entries
            blocks = sum(block.last <= cut for block in cold_topic(client, name).blocks)
            rows.append({
                "action": "trim", "topic": text, "blocks": blocks, "to": entry_ids.text(cut).decode(), "rows": gone,
                "bytes": round(gone * _mean_bytes(client, name)),
            })  # fmt: skip
    if options.delete is not None:
        found = [part.about("look for what matches in") for part in options.parts(client)]
        if spark is not None:
            counts = options.counted(spark)
            found = [row | {"matching": counts.get(str(row["topic"]), 0)} for row in found]
        rows += found
    return Outcome("retain", rows, summed(rows, "blocks", "rows", "bytes", *(["matching"] if spark else [])))


def run(spark: SparkSession | None, options: Retain, progress: Progress | None = None) -> Outcome:
    """Trim, and then delete. Spark is needed for a predicate only."""
    options.check()
    client = options.connect()
    bars = progress or Progress()
    rows: list[dict[str, object]] = []
    for text, name in options.names(client).items():
        before = _lengths(client, name)
        with bars.bar(f"trim {text}", lambda: None):
            after, left = before, None
            while after != left:  # how many entries this many bytes are is only known about
                left = after
                trim(client, name, cut_of(client, name, options))
                after = _lengths(client, name)
        rows.append({"topic": text, "trimmed": before[0] - after[0], "bytes": before[1] - after[1], "deleted": 0})
    if options.delete is not None:
        if spark is None:
            raise OptionRefused("delete: needs a Spark session")
        names = options.names(client)
        lengths = {text: _lengths(client, name)[0] for text, name in names.items()}
        with bars.spark("delete", spark):
            delete(options, spark, names)
        for row in rows:
            topic = str(row["topic"])
            row["deleted"] = lengths[topic] - _lengths(client, names[topic])[0]
    return Outcome("retain", rows, summed(rows, "trimmed", "bytes", "deleted"))


def cut_of(client: Any, name: bytes, options: Retain) -> Id:
    """Return the last id that goes by age and size."""
    there = extent(client, name) or NOTHING
    cold = cold_topic(client, name)
    cut = there.trimmed
    if options.keep_since_ms is not None and options.keep_since_ms > 0:
        cut = max(cut, min(entry_ids.before((options.keep_since_ms, 0)) or entry_ids.MIN, there.last))
    surplus = 0
    if options.keep_entries is not None:
        surplus = there.length - options.keep_entries
    if options.keep_bytes is not None:
        over = _lengths(client, name)[1] - options.keep_bytes
        if over > 0:
            surplus = max(surplus, -int(-over // max(_mean_bytes(client, name), 1.0)))
    if surplus > 0:
        last = marks(client, name, there.trimmed, there.last, min(_SLICE, surplus), min(surplus, there.length)).last
        cut = max(cut, last or cut)
    if options.exact or cut >= cold.sealed_to:
        return cut
    return max((block.last for block in cold.blocks if block.last <= cut), default=there.trimmed)


def trim(client: Any, name: bytes, cut: Id) -> None:
    """Everything up to and with this id goes: whole blocks at once, the rest in slices."""
    at = (extent(client, name) or NOTHING).trimmed
    for edge in [*(block.last for block in cold_topic(client, name).blocks), None]:
        upto = cut if edge is None else min(edge, cut)
        if upto <= at:
            continue
        if edge is None or edge > cut:
            for mark in _steps(client, name, at, upto):
                _trim_to(client, name, mark)
        _trim_to(client, name, upto)
        at = upto


def _steps(client: Any, name: bytes, after: Id, upto: Id) -> Iterator[Id]:
    yield from marks(client, name, after, upto, _SLICE).ids


def _trim_to(client: Any, name: bytes, last: Id) -> None:
    behind = entry_ids.after(last)
    if behind is None:
        client.execute_command("XTRIM", name, "MAXLEN", "=", 0)
    else:
        client.execute_command("XTRIM", name, "MINID", "=", entry_ids.text(behind))


def delete(options: Filtered, spark: SparkSession, names: dict[str, bytes]) -> None:
    """Delete matching entries, found and deleted by tasks. `names`: the topics, as a frame names them."""
    told = {name: value for name, value in options.told().items() if name != "coldPath"}

    def delete_all(rows: Iterator[Any]) -> None:
        from rlite_pubsub.pipeline.connection import connect
        from rlite_pubsub.pipeline.options import SourceOptions

        client: Any = connect(SourceOptions.of(told))
        waiting: dict[str, list[str]] = {}
        for row in rows:
            ids = waiting.setdefault(row.topic, [])
            ids.append(row.id)
            if len(ids) == _BATCH:
                client.execute_command("XDEL", names[row.topic], *ids)
                ids.clear()
        for topic, ids in waiting.items():
            if ids:
                client.execute_command("XDEL", names[topic], *ids)

    options.matching(spark).select("topic", "id").foreachPartition(delete_all)


def _lengths(client: Any, name: bytes) -> tuple[int, int]:
    """Entries and bytes."""
    told = client.execute_command("TOPIC.INFO", name)
    known = dict(zip(told[::2], told[1::2], strict=True))
    return int(known[b"length"]), int(known[b"bytes"])


def _mean_bytes(client: Any, name: bytes) -> float:
    entries, size = _lengths(client, name)
    return size / entries if entries else 0.0
