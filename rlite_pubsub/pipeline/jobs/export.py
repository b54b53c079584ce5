"""`export`: topics into a Delta table, by deltalake (the extra `[delta]`): no jar, no Delta in Spark.

Promise: each entry is there once. The table itself remembers which batch of which query it has, in the same commit as
the rows: a batch that is done again after a crash is passed over.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlite_pubsub.extras import missing
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.jobs import archive
from rlite_pubsub.pipeline.jobs.archive import Archive
from rlite_pubsub.pipeline.jobs.declared import count, option
from rlite_pubsub.pipeline.jobs.outcome import Outcome
from rlite_pubsub.pipeline.spark.progress import Done, Progress

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_BATCH_ENTRIES = 500_000


@dataclass(frozen=True, kw_only=True)
class Export(Archive):
    """Like an archive; `to` is a table for deltalake: a folder, s3://…"""

    batch_entries: int = option(
        "the most entries at once; the driver holds them in memory", default=_BATCH_ENTRIES, read=count
    )


def check() -> None:
    """Check that deltalake is installed. Raises OptionRefused."""
    if importlib.util.find_spec("deltalake") is None:
        raise OptionRefused(missing("pipeline export", "delta"))


def plan(options: Export) -> Outcome:
    """Return what would be read."""
    check()
    found = archive.plan(options)
    return Outcome("export", found.rows, found.totals)


def run(spark: SparkSession, options: Export, progress: Progress | None = None) -> Outcome:
    """Run until everything that existed is exported; with `follow` until interrupted."""
    check()
    to, checkpoint = options.where()
    counts: list[int] = []

    def put(frame: DataFrame, number: int) -> None:
        query = str(frame.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"))
        counts.append(append(to, frame.select(*options.columns, "date").toArrow(), query, number))

    frame = archive.foldered(archive.stream(spark, options))
    writer = frame.writeStream.foreachBatch(put).option("checkpointLocation", checkpoint)
    if options.follow:
        writer = writer.trigger(processingTime=f"{options.every_ms} milliseconds")
    else:
        writer = writer.trigger(availableNow=True)
    query = writer.start()
    with (progress or Progress()).bar("export", lambda: Done(0, 0, f"{sum(counts):,} entries")):
        archive.wait(query)
    return Outcome("export", [{"to": to, "rows": sum(counts), "batches": len(counts)}])


def append(to: str, rows: Any, query: str, number: int) -> int:
    """Put a batch into the table, if it is not there; how many rows were put."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    if DeltaTable.is_deltatable(to):
        before = DeltaTable(to).transaction_version(query)
        if before is not None and before >= number:
            return 0
    if not rows.num_rows:
        return 0
    properties = CommitProperties(app_transactions=[Transaction(query, number)])
    write_deltalake(to, rows, mode="append", partition_by=["topic", "date"], commit_properties=properties)
    return int(rows.num_rows)
