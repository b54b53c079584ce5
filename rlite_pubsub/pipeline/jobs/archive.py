"""`archive`: topics into Parquet that everybody can read, once what there is, or as it comes.

    TO/topic_folder=NAME/date=YYYY-MM-DD/batch-QUERY-NUMBER-PART.parquet

The topic is a real column, too: the folder's name is percent-encoded by Spark, and cut with a digest where it would be
too long for a file system.

Promise: every entry is there once, for all readers of it, Spark or not. A batch is written aside and then moved,
under names that say which batch it is; a batch that is done again after a crash first removes what it had moved before.
Where a query goes on is in its checkpoint: do not share one folder between two checkpoints of the same topics.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.jobs.declared import age_ms, count, listed, option
from rlite_pubsub.pipeline.jobs.outcome import Outcome, summed
from rlite_pubsub.pipeline.jobs.selection import Selection
from rlite_pubsub.pipeline.spark.progress import Done, Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

COLUMNS = ("topic", "id", "ms", "seq", "timestamp", "key", "value", "headers")
FOLDERS = ("topic_folder", "date")
_STAGING = "_staging"
"""Hidden from readers."""
_LONGEST_BYTES = 80
"""Of a topic's name: with all of them escaped it is still a file's name."""
_KEPT = 12
_LOOK_S = 0.1
_BATCH_ENTRIES = 5_000_000


def _columns(word: str) -> tuple[str, ...]:
    """Columns, with commas between"""
    found = listed(word)
    wrong = [name for name in found if name not in COLUMNS]
    if wrong or "topic" not in found:
        raise ValueError(f"columns are topic and some of {', '.join(COLUMNS[1:])}")
    return found


@dataclass(frozen=True, kw_only=True)
class Archive(Selection):
    """From where to archive, to where, and how often."""

    to: str = option("the folder, or a URL that Spark writes to", metavar="FOLDER")
    checkpoint: str | None = option("where it stores its progress (default: TO/_checkpoint)", default=None)
    follow: bool = option("go on as entries come, until interrupted", default=False)
    every_ms: int = option("with --follow: write this often", default=60_000, read=age_ms, word="every", metavar="AGE")
    batch_entries: int = option("the most entries at once", default=_BATCH_ENTRIES, read=count)
    columns: tuple[str, ...] = option(
        "of topic, id, ms, seq, timestamp, key, value, headers (default: all)", default=COLUMNS, read=_columns
    )
    allow_data_loss: bool = option("continue even if entries were removed before they were archived", default=False)

    def where(self) -> tuple[str, str]:
        """(folder, checkpoint). Raises OptionRefused."""
        if self.until_ms is not None:
            raise OptionRefused("until: archive does not take it; it continues where it ended")
        to = self.to.rstrip("/")
        return to, self.checkpoint if self.checkpoint is not None else f"{to}/_checkpoint"


def foldered(frame: DataFrame) -> DataFrame:
    """Add the two columns that say in which folder an entry is."""
    from pyspark.sql import functions as f

    is_long = f.octet_length("topic") > _LONGEST_BYTES
    cut = f.concat(f.left("topic", f.lit(_KEPT)), f.lit("%"), f.md5(f.col("topic").cast("binary")))
    return frame.withColumns({
        "topic_folder": f.when(is_long, cut).otherwise(f.col("topic")),
        "date": f.date_format("timestamp", "yyyy-MM-dd"),
    })


def stream(spark: SparkSession, options: Archive) -> DataFrame:
    """The entries, as they come."""
    said = options.told() | options.subscription()
    said["maxOffsetsPerTrigger"] = str(options.batch_entries)
    said["failOnDataLoss"] = str(not options.allow_data_loss).lower()
    if options.since_ms is not None:
        said["startingTimestamp"] = str(options.since_ms)
    else:
        said["startingOffsets"] = "earliest"
    schema = ", ".join(f"{name} {_TYPES[name]}" for name in dict.fromkeys((*options.columns, "timestamp")))
    reader = spark.readStream.format("rlite").options(**said)
    return reader.schema(schema).load()


_TYPES = {
    "topic": "string",
    "id": "string",
    "ms": "long",
    "seq": "long",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<name: binary, value: binary>>",
}


def plan(options: Archive) -> Outcome:
    """Return what there is. The checkpoint knows how much of it was archived already."""
    to, checkpoint = options.where()
    rows = [part.about("read") for part in options.parts(options.connect())]
    rows.append({"action": "write", "topic": to, "checkpoint": checkpoint})
    return Outcome("archive", rows, summed(rows, "blocks", "rows", "bytes"))


def run(spark: SparkSession, options: Archive, progress: Progress | None = None) -> Outcome:
    """Run until everything that existed is archived; with `follow` until interrupted."""
    counts: list[int] = []
    query = start(spark, options, counts)
    with (progress or Progress()).bar("archive", lambda: Done(0, 0, f"{sum(counts):,} entries")):
        wait(query)
    to, _ = options.where()
    return Outcome("archive", [{"to": to, "rows": sum(counts), "batches": len(counts)}])


def wait(query: StreamingQuery) -> None:
    """Wait until it has ended; Ctrl-C ends it. Raises the error it has failed with."""
    pause = threading.Event()
    try:
        while query.isActive:
            pause.wait(_LOOK_S)
    except KeyboardInterrupt:
        query.stop()
    query.awaitTermination()


def start(spark: SparkSession, options: Archive, counts: list[int]) -> StreamingQuery:
    """Return the query, at work. `counts` gets how many entries each batch has put."""
    to, checkpoint = options.where()
    columns = [*dict.fromkeys(options.columns), *FOLDERS]

    def put(frame: DataFrame, number: int) -> None:
        counts.append(_put(frame.select(*columns), number, to))

    writer = foldered(stream(spark, options)).writeStream.foreachBatch(put).option("checkpointLocation", checkpoint)
    if options.follow:
        return writer.trigger(processingTime=f"{options.every_ms} milliseconds").start()
    return writer.trigger(availableNow=True).start()


def _put(frame: DataFrame, number: int, to: str) -> int:
    """One batch: aside, and then to where it belongs; how many entries."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation()
    session = frame.sparkSession
    query = str(session.sparkContext.getLocalProperty("sql.streaming.queryId"))
    name = f"batch-{query.partition('-')[0]}-{number:010d}"
    staging = f"{to}/{_STAGING}/{name}"
    observed = frame.observe(seen, f.count("*").alias("rows"))
    observed.write.mode("overwrite").partitionBy(*FOLDERS).option("compression", "zstd").parquet(staging)
    files = _ArchiveFiles(session, to)
    for old in files.found(f"{to}/*/*/{name}-*.parquet"):
        files.delete(old)
    parts = sorted(files.found(f"{staging}/*/*/*.parquet"))
    for place, part in enumerate(parts):
        files.move(part, f"{to}/{'/'.join(part.split('/')[-3:-1])}/{name}-{place:05d}.parquet")
    files.delete(staging)
    return int(seen.get["rows"])


class _ArchiveFiles:
    """The archive's file system, through Spark."""

    def __init__(self, session: SparkSession, to: str) -> None:
        java: Any = session._jvm
        self._path = java.org.apache.hadoop.fs.Path
        self._system = self._path(to).getFileSystem(session._jsc.hadoopConfiguration())

    def found(self, pattern: str) -> list[str]:
        """Files whose path matches; folders are escaped as Spark does it, so none of their names is a pattern."""
        statuses = self._system.globStatus(self._path(pattern))
        return [str(status.getPath().toString()) for status in statuses or ()]

    def move(self, path: str, to: str) -> None:
        target = self._path(to)
        self._system.mkdirs(target.getParent())
        if not self._system.rename(self._path(path), target):
            raise OSError(f"cannot move {path} to {to}")

    def delete(self, path: str) -> None:
        self._system.delete(self._path(path), True)
