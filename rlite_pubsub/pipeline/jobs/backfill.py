"""`backfill`: Parquet, JSON lines or CSV into a topic, all of it or nothing.

Each row becomes an entry: columns `key` and `value`, or `headers` (as an archive has them), are what they are; of any
other table each column is a field, as text, and a null is no field. The same backfill may be started again, and is done
once: it is known by its name, which is that of its source unless another is said.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlite_pubsub.pipeline.connection import connect
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.jobs.declared import option
from rlite_pubsub.pipeline.jobs.outcome import Outcome
from rlite_pubsub.pipeline.jobs.selection import ServerOptions
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.spark.progress import Progress
from rlite_pubsub.pipeline.topics import extent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMATS = {"parquet": "parquet", "json": "json", "jsonl": "json", "csv": "csv"}
_HEADERS = "array<struct<name:binary,value:binary>>"
_OWN = frozenset(("topic", "id", "ms", "seq", "timestamp", "key", "value", "headers", "topic_folder", "date"))


def _format(word: str) -> str:
    """parquet, json or csv"""
    if word not in FORMATS:
        raise ValueError(f"{word!r} is not a format; use parquet, json or csv")
    return FORMATS[word]


@dataclass(frozen=True, kw_only=True)
class Backfill(ServerOptions):
    """What is read, and how it becomes entries."""

    path: str = option("a file, a folder, or a URL that Spark reads", word="from", metavar="PATH")
    topic: str | None = option("the topic (default: the column `topic`)", default=None)
    format: str | None = option("parquet, json (a line each) or csv (default: by the name)", default=None, read=_format)
    value: str | None = option("the column that is the value, where not every column is a field", default=None)
    key: str | None = option("the column that is the key", default=None)
    id: str | None = option("the column with ids (ms-seq), which must increase", default=None)
    time: str | None = option(
        "the column with times, from which ids are made, in order", default=None, metavar="COLUMN"
    )
    name: str | None = option(
        "a name for this backfill, so that repeating it has no effect (default: the source's path)", default=None
    )

    def known_as(self) -> str:
        """Return the name by which this backfill is known to be done."""
        if self.name is not None:
            return self.name
        path = self.path if "://" in self.path else os.path.abspath(self.path)
        return path if self.topic is None else f"{path} into {self.topic}"

    def source(self) -> str:
        """Return the format. Raises OptionRefused."""
        if self.format is not None:
            return self.format
        ending = self.path.rstrip("/").removesuffix(".gz").rpartition(".")[2].lower()
        return FORMATS.get(ending, "parquet")


def read(spark: SparkSession, options: Backfill) -> DataFrame:
    """Return the table."""
    reader = spark.read.format(options.source())
    if options.source() == "csv":
        reader = reader.option("header", "true")
    return reader.load(options.path)


def entries(frame: DataFrame, options: Backfill) -> DataFrame:
    """Rows as the sink takes them, in the order in which they are appended. Raises OptionRefused."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    columns = dict(frame.dtypes)
    for said in (options.value, options.key, options.id, options.time):
        if said is not None and said not in columns:
            raise OptionRefused(f"there is no column {said!r}; there are {', '.join(columns)}")
    if options.topic is None and "topic" not in columns:
        raise OptionRefused("give topic: no column has that name")
    if options.id is not None and options.time is not None:
        raise OptionRefused("id and time: only one of them can set the ids")
    made: dict[str, Any] = {}
    if options.topic is None:
        made["topic"] = f.col("topic").cast("string")
    if options.value is not None:
        made["value"] = f.col(_quoted(options.value)).cast("string").cast("binary")
        if options.key is not None:
            made["key"] = f.col(_quoted(options.key)).cast("string").cast("binary")
    elif columns.get("headers") == _HEADERS:
        made["headers"] = f.col("headers")
    elif "value" in columns and columns.keys() <= _OWN:
        made["value"] = f.col("value").cast("binary")
        if "key" in columns:
            made["key"] = f.col("key").cast("binary")
    else:
        made["headers"] = _as_fields([name for name in columns if name not in (options.id, "topic")])
    if options.id is not None:
        made["id"] = f.col(_quoted(options.id)).cast("string")
        halves = f.split("id", "-")
        order = [f.get(halves, f.lit(place)).cast("decimal(20,0)") for place in (0, 1)]
        return frame.select(*(column.alias(name) for name, column in made.items())).orderBy(*order)
    if options.time is not None:
        moment = f.col(_quoted(options.time))
        kind = columns[options.time]
        ms = moment.cast("long") if kind in ("int", "bigint") else f.unix_millis(moment.cast("timestamp"))
        partition = [made["topic"]] if "topic" in made else []
        seq = f.row_number().over(Window.partitionBy(*partition, ms).orderBy(f.monotonically_increasing_id())) - 1
        made["id"] = f.concat_ws("-", ms.cast("string"), seq.cast("string"))
        found = frame.select(*(column.alias(name) for name, column in made.items()), ms.alias("_ms"), seq.alias("_seq"))
        return found.orderBy("_ms", "_seq").drop("_ms", "_seq")
    return frame.select(*(column.alias(name) for name, column in made.items()))


def _as_fields(names: list[str]) -> Any:
    """Every column that is not null, as a field."""
    from pyspark.sql import functions as f

    pairs = [
        f.struct(
            f.lit(name.encode()).alias("name"), f.col(_quoted(name)).cast("string").cast("binary").alias("value")
        )
        for name in names
    ]
    return f.filter(f.array(*pairs), lambda pair: pair["value"].isNotNull())


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def plan(options: Backfill, spark: SparkSession | None = None) -> Outcome:
    """Return what would be read: counted, if there is a session to do it."""
    row: dict[str, object] = {"action": "read", "from": options.path, "format": options.source()}
    if spark is not None:
        frame = entries(read(spark, options), options)
        row |= {"rows": frame.count(), "columns": ", ".join(frame.columns)}
    target = options.topic if options.topic is not None else "by the column topic"
    return Outcome("backfill", [row, {"action": "write", "topic": target}])


def run(spark: SparkSession, options: Backfill, progress: Progress | None = None) -> Outcome:
    """Append it."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    client = connect(SourceOptions.of({name: value for name, value in options.told().items() if name != "coldPath"}))
    seen = Observation("backfill")
    frame = entries(read(spark, options), options).observe(seen, f.count("*").alias("rows"))
    writer = frame.write.format("rlite").mode("append").option("keepIds", "true")
    for name, value in options.told().items():
        if name != "coldPath":
            writer = writer.option(name, value)
    if options.topic is not None:
        writer = writer.option("topic", options.topic)
    writer = writer.option("application", f"backfill:{options.known_as()}").option("batch", "0")
    before = _added(client, options.topic)
    with (progress or Progress()).spark("backfill", spark):
        writer.save()
    row: dict[str, object] = {"from": options.path, "topic": options.topic or "", "rows": seen.get["rows"]}
    if options.topic is not None:
        row["written"] = _added(client, options.topic) - before
        row["done before"] = not row["written"] and bool(row["rows"])
    return Outcome("backfill", [row])


def _added(client: Any, topic: str | None) -> int:
    """Return how many entries were ever added to a topic."""
    if topic is None or extent(client, topic.encode()) is None:
        return 0
    told = client.execute_command("TOPIC.INFO", topic)
    return int(dict(zip(told[::2], told[1::2], strict=True))[b"entries-added"])
