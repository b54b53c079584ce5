"""The options that most jobs share: which server, which of its topics, and which of their entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.pipeline.cold_topic import ColdTopic, cold_topic
from rlite_pubsub.pipeline.connection import connect
from rlite_pubsub.pipeline.errors import OptionRefused, TopicMissing
from rlite_pubsub.pipeline.field_columns import field_columns
from rlite_pubsub.pipeline.jobs.declared import moment_ms, option
from rlite_pubsub.pipeline.options import DEFAULT_URL, SourceOptions
from rlite_pubsub.pipeline.spark.interpreter import source_is_there
from rlite_pubsub.pipeline.topics import NOTHING, extent, find_topics, marks
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_ALL = ".*"
_STEP = 100_000
ALL_COLUMNS = (
    "topic string, id string, ms long, seq long, timestamp timestamp, key binary, value binary, "
    "headers array<struct<name: binary, value: binary>>"
)
"""Of every topic, `events` too."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where topics are."""

    url: str = option("the server: redis://host:port/db", default=DEFAULT_URL, is_secret=True)
    username: str | None = option("of the server's ACL", default=None)
    password_file: str | None = option("a file that holds the password", default=None, metavar="FILE")
    cold_path: str | None = option(
        "the cold store, where executors reach it by another URL than the server", default=None, metavar="URL"
    )

    def connect(self) -> Any:
        """Return the client of this process."""
        return connect(SourceOptions.of(self.told()))

    def told(self) -> dict[str, str]:
        """Return it as options of the source."""
        said = {
            "url": self.url,
            "username": self.username,
            "passwordFile": self.password_file,
            "coldPath": self.cold_path,
        }
        return {name: value for name, value in said.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class TopicOptions(ServerOptions):
    """Some of a server's topics: those that are named, or match, or all."""

    topics: tuple[str, ...] = option("all, if none is named", default=(), is_place=True, metavar="TOPIC")
    pattern: str | None = option("topics whose whole name matches", default=None, metavar="REGEX")

    def subscription(self) -> dict[str, str]:
        """Return the subscription as options of the source. Raises OptionRefused."""
        if self.topics and self.pattern is not None:
            raise OptionRefused("topics are named, or match a pattern: not both")
        if any("," in topic for topic in self.topics):
            raise OptionRefused("a topic whose name has a comma can only be selected by --pattern")
        if self.topics:
            return {"subscribe": ",".join(self.topics)}
        return {"subscribePattern": _ALL if self.pattern is None else self.pattern}

    def names(self, client: Any) -> dict[str, bytes]:
        """Text -> name. Raises OptionRefused where a topic that is named is not there."""
        found = find_topics(client, SourceOptions.of(self.told() | self.subscription()))
        for text in self.topics:
            if extent(client, found[text]) is None:
                raise TopicMissing(text)
        return dict(sorted(found.items()))


@dataclass(frozen=True)
class SelectedPart:
    """The selection from one topic."""

    topic: str
    name: bytes
    after: Id
    upto: Id
    entries: int
    size_bytes: int
    """About: as many as the topic's entries have on average."""
    blocks: int
    first: Id | None
    last: Id | None

    def about(self, action: str) -> dict[str, object]:
        """Return a row of a dry run."""
        return {
            "action": action,
            "topic": self.topic,
            "blocks": self.blocks,
            "from": _text(self.first),
            "to": _text(self.last),
            "rows": self.entries,
            "bytes": self.size_bytes,
        }


@dataclass(frozen=True, kw_only=True)
class Selection(TopicOptions):
    """Entries of some topics, from a span of time."""

    since_ms: int | None = option(
        "entries from this time on: 2026-11-18T10:00, or 7d (ago)",
        default=None,
        read=moment_ms,
        word="since",
        metavar="TIME",
    )
    until_ms: int | None = option(
        "entries before this time", default=None, read=moment_ms, word="until", metavar="TIME"
    )

    def asked(self) -> dict[str, str]:
        """Return all of it as options of a batch read."""
        said = self.told() | self.subscription()
        if self.since_ms is not None:
            said["startingTimestamp"] = str(self.since_ms)
        if self.until_ms is not None:
            said["endingTimestamp"] = str(self.until_ms)
        return said

    def read(self, spark: SparkSession, columns: str | StructType | None = None) -> DataFrame:
        """Read these entries. `columns`: a schema, for the wanted ones."""
        with source_is_there():
            return spark.read.format("rlite").options(**self.asked()).schema(columns or ALL_COLUMNS).load()

    def parts(self, client: Any) -> list[SelectedPart]:
        """Return the selection, topic by topic. Blocks that are entirely in it are counted and not read."""
        return [self._part(client, text, name) for text, name in self.names(client).items()]

    def _part(self, client: Any, text: str, name: bytes) -> SelectedPart:
        there = extent(client, name) or NOTHING
        cold = cold_topic(client, name)
        after = max(there.trimmed, _edge(self.since_ms, entry_ids.MIN))
        upto = min(there.last, _edge(self.until_ms, entry_ids.MAX))
        blocks = [block for block in cold.blocks if block.last > after and block.first <= min(upto, cold.sealed_to)]
        if after >= upto:
            return SelectedPart(text, name, after, upto, 0, 0, 0, None, None)
        is_all = after <= there.trimmed and upto == there.last
        entries = there.length if is_all else self._count(client, name, after, upto, cold)
        each = _bytes_of(client, name) / there.length if there.length else 0.0
        ends = [_end_of(client, name, after, upto, newest=newest) if entries else None for newest in (False, True)]
        return SelectedPart(text, name, after, upto, entries, round(entries * each), len(blocks), *ends)

    @staticmethod
    def _count(client: Any, name: bytes, after: Id, upto: Id, cold: ColdTopic) -> int:
        """Blocks by what is known of them, all else by asking the server."""
        count, at = 0, after
        for block in cold.blocks:
            if at < block.first and block.last <= min(upto, cold.sealed_to):
                before = entry_ids.before(block.first)
                if before is not None and at < before:
                    count += marks(client, name, at, before, _STEP).entries
                count += block.count - sum(block.first <= gone <= block.last for gone in cold.deleted)
                at = block.last
        return count + (marks(client, name, at, upto, _STEP).entries if at < upto else 0)


@dataclass(frozen=True, kw_only=True)
class Filtered(Selection):
    """Of these entries those for which an expression is true."""

    fields: str | None = option(
        "fields as columns for the expression: 'item, price double, id as order_id'", default=None, metavar="FIELDS"
    )

    @property
    def said(self) -> tuple[str, str | None]:
        """The option that has the expression, and the expression."""
        raise NotImplementedError

    @property
    def expression(self) -> str | None:
        """What is to be true, in SQL."""
        return self.said[1]

    def matching(self, spark: SparkSession) -> DataFrame:
        """Return the entries for which it is true. Raises OptionRefused where Spark does not understand it."""
        from rlite_pubsub.pipeline.columns import EVERY, columns_with
        from rlite_pubsub.pipeline.schema import structure

        made = columns_with(EVERY, field_columns(self.fields or ""))
        option, expression = self.said
        frame = self.read(spark, structure(made))
        if expression is None:
            return frame
        from rlite_pubsub.pipeline.spark.failures import naming

        with naming(option, expression):
            return frame.where(expression)

    def counted(self, spark: SparkSession) -> dict[str, int]:
        """Return how many entries of each topic match."""
        return {row["topic"]: row["count"] for row in self.matching(spark).groupBy("topic").count().collect()}

    def asked(self) -> dict[str, str]:
        """Return all of it as options of a batch read."""
        return super().asked() | ({} if self.fields is None else {"fields": self.fields})


def _edge(ms: int | None, otherwise: Id) -> Id:
    if ms is None:
        return otherwise
    return entry_ids.before((min(max(ms, 0), entry_ids.PART_MAX), 0)) or entry_ids.MIN


def _end_of(client: Any, name: bytes, after: Id, upto: Id, *, newest: bool) -> Id | None:
    low, high = b"(" + entry_ids.text(after), entry_ids.text(upto)
    ends = (high, low) if newest else (low, high)
    found = client.execute_command("XREVRANGE" if newest else "XRANGE", name, *ends, "COUNT", 1)
    return id_of_entry(found[0][0]) if found else None


def id_of_entry(text: bytes) -> Id:
    """Return an entry's id, as the server says it."""
    ms, _, seq = text.partition(b"-")
    return int(ms), int(seq)


def _bytes_of(client: Any, name: bytes) -> int:
    told = client.execute_command("TOPIC.INFO", name)
    return int(dict(zip(told[::2], told[1::2], strict=True))[b"bytes"])


def _text(entry_id: Id | None) -> str | None:
    return None if entry_id is None else entry_ids.text(entry_id).decode()


def shown(name: bytes) -> str:
    """Return a topic's name, as the source has it."""
    return text_of(name)
