"""`stats`: per topic and time window, how much comes, how evenly, and how late; and how far consumers are behind.

    topic, start, entries, bytes                    bytes: of names and values of fields
    gap_p50, gap_p95, gap_p99, gap_max              ms between an entry and the one before it in its topic
    latency_p50, latency_p95, latency_p99, latency_max     ms between the producer's time (`time_field`) and the id's

Promise: the percentiles are exact (linear between neighbours), whatever the size: what is shuffled and sorted are not
entries but how often each gap occurs in a window. `start` is null in the row of a whole topic. Ids from 2^63 ms on are
no times, and passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlite_pubsub.pipeline.jobs.declared import age_ms, option
from rlite_pubsub.pipeline.jobs.outcome import Outcome, summed
from rlite_pubsub.pipeline.jobs.report import Lag, Window, page
from rlite_pubsub.pipeline.jobs.selection import SelectedPart, Selection
from rlite_pubsub.pipeline.spark.progress import Progress

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

COLUMNS = "topic string, ms long, seq long, headers array<struct<name: binary, value: binary>>"
"""What it needs of entries."""
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
UNITS_PER_MS = {"s": 0.001, "ms": 1.0, "us": 1000.0, "ns": 1_000_000.0}
_WINDOWS = 200
"""About this many, if nothing is said."""
_NICE_MS = (1000, 5000, 10_000, 30_000, 60_000, 300_000, 900_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000)


def _unit(word: str) -> str:
    """s, ms, us or ns"""
    if word not in UNITS_PER_MS:
        raise ValueError(f"{word!r} is not a unit; there are {', '.join(UNITS_PER_MS)}")
    return word


@dataclass(frozen=True, kw_only=True)
class Stats(Selection):
    """What is counted, and where the result goes."""

    window_ms: int | None = option(
        "length of a window: 10s, 1m, 1h (default: about 200 of them)", default=None, read=age_ms, word="window"
    )
    time_field: str | None = option("the field with the producer's time, a number", default=None, metavar="FIELD")
    time_unit: str = option("the unit of that field: s, ms (default), us or ns since 1970", default="ms", read=_unit)
    to: str | None = option("write the windows there as Parquet", default=None, metavar="FOLDER")
    report: str | None = option("write a page with plots there", default=None, metavar="FILE.html")


def stats(frame: DataFrame, options: Stats) -> DataFrame:
    """Count entries (`COLUMNS`): a row for each topic and window, and one for each topic."""
    return summarised(histogram(frame, options))


def histogram(frame: DataFrame, options: Stats) -> DataFrame:
    """Return how often each gap and each latency occurs in a window. The gap of a window's first entry is null here."""
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as f

    length = options.window_ms or _NICE_MS[4]
    entries = frame.where("ms >= 0").select(
        "topic",
        "ms",
        "seq",
        (f.col("ms") - f.pmod("ms", f.lit(length))).alias("start"),
        f.aggregate("headers", f.lit(0).cast("long"), _with_bytes).alias("bytes"),
        _latency(options).alias("latency"),
    )
    before = f.lag("ms").over(Over.partitionBy("topic", "start").orderBy("ms", "seq"))
    return (
        entries.withColumn("gap", f.col("ms") - before)
        .groupBy("topic", "start", "gap", "latency")
        .agg(
            f.count("*").alias("entries"),
            f.sum("bytes").alias("bytes"),
            f.min("ms").alias("low"),
            f.max("ms").alias("high"),
        )
    )


def _with_bytes(sum: Column, one: Column) -> Column:
    from pyspark.sql import functions as f

    return sum + f.octet_length(one["name"]) + f.octet_length(one["value"])


def _latency(options: Stats) -> Column:
    from pyspark.sql import functions as f

    if options.time_field is None:
        return f.lit(None).cast("double")
    name = f.lit(options.time_field.encode())
    said = f.get(f.filter("headers", lambda one: one["name"] == name), f.lit(0))["value"]
    number = said.cast("string").try_cast("double")
    return f.col("ms") - number / f.lit(UNITS_PER_MS[options.time_unit])


def summarised(counted: DataFrame) -> DataFrame:
    """Return the rows. `counted` (`histogram`) is used twice: where it is large it is worth to be kept."""
    from pyspark.sql import Window as Over
    from pyspark.sql import functions as f

    edges = counted.groupBy("topic", "start").agg(f.min("low").alias("low"), f.max("high").alias("high"))
    before = f.lag("high").over(Over.partitionBy("topic").orderBy("start"))
    firsts = edges.select(
        "topic",
        "start",
        (f.col("low") - before).alias("gap"),
        f.lit(None).cast("double").alias("latency"),
        f.lit(0).cast("long").alias("entries"),
        f.lit(0).cast("long").alias("bytes"),
    )
    every = counted.select("topic", "start", "gap", "latency", "entries", "bytes").union(firsts)
    times = f.greatest("entries", f.lit(1))
    points = f.array(*map(f.lit, PERCENTILES.values()))
    rows = every.groupingSets([[f.col("topic"), f.col("start")], [f.col("topic")]], "topic", "start").agg(
        f.sum("entries").alias("entries"),
        f.sum("bytes").alias("bytes"),
        f.percentile("gap", points, times).alias("gap"),
        f.percentile("latency", points, times).alias("latency"),
    )
    of_each = [
        f.get(kind, f.lit(place)).alias(f"{kind}_{name}")
        for kind in ("gap", "latency")
        for place, name in enumerate(PERCENTILES)
    ]
    return rows.select("topic", f.timestamp_millis("start").alias("start"), "entries", "bytes", *of_each)


def lags(client: Any, names: dict[str, bytes]) -> list[Lag]:
    """Return how far each group is behind at this moment."""
    found = []
    for text, name in names.items():
        for told in client.xinfo_groups(name):
            known = {_text(key): value for key, value in told.items()}
            found.append(Lag(text, _text(known["name"]), known["lag"], known["pending"], known["consumers"]))
    return found


def _text(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def plan(options: Stats) -> Outcome:
    """Return what would be read."""
    parts = options.parts(options.connect())
    options = settled(options, parts)
    rows = [part.about("read") for part in parts]
    rows += [{"action": "write", "topic": str(to)} for to in (options.to, options.report) if to is not None]
    return Outcome("stats", rows, {**summed(rows, "blocks", "rows", "bytes"), "window ms": options.window_ms})


def settled(options: Stats, parts: list[SelectedPart]) -> Stats:
    """Return the options with a window."""
    if options.window_ms is not None:
        return options
    edges = [(part.first[0], part.last[0]) for part in parts if part.first is not None and part.last is not None]
    span = max((high for _, high in edges), default=0) - min((low for low, _ in edges), default=0)
    return replace(options, window_ms=next((nice for nice in _NICE_MS if nice * _WINDOWS >= span), _NICE_MS[-1]))


def run(spark: SparkSession, options: Stats, progress: Progress | None = None) -> Outcome:
    """Count, and write what is wanted."""
    client = options.connect()
    options = settled(options, options.parts(client))
    bars = progress or Progress()
    counted = histogram(options.read(spark, COLUMNS), options).persist()
    try:
        found = summarised(counted)
        with bars.spark("stats", spark):
            rows = found.orderBy("topic", "start").toArrow().to_pylist()
        windows = [row for row in rows if row["start"] is not None]
        if options.to is not None:
            with bars.spark("writing", spark):
                found.where("start is not null").coalesce(1).write.mode("overwrite").parquet(options.to)
    finally:
        counted.unpersist()
    totals = [{name: value for name, value in row.items() if name != "start"} for row in rows if row["start"] is None]
    behind = lags(client, options.names(client))
    assert options.window_ms is not None
    if options.report is not None:
        told = [Window(**(row | {"start": round(row["start"].timestamp() * 1000)})) for row in windows]
        of_topics = [Window(**{"start": 0, **row}) for row in totals]
        Path(options.report).write_text(page(told, of_topics, behind, options.window_ms))
    return Outcome(
        "stats",
        totals,
        {
            **summed(totals, "entries", "bytes"),
            "window ms": options.window_ms,
            "windows": len(windows),
            "lag": [one._asdict() for one in behind],
        },
    )
