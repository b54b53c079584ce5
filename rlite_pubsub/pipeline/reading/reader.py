"""Batch reads. What a DataFrame holds is fixed when it is planned: which ids of which topics.

Entries that come later are not in it, and entries that are gone by the time they are read are an error.

Filters on topic, id and time narrow what is planned; Spark evaluates all of them once more. They do so only where
`pushFilters` is said, and Spark's `spark.sql.python.filterPushdown.enabled` is on: Spark (4.3) keeps the plan of the
last filter that it has pushed with the DataFrame, and takes it for every other query of that DataFrame.
`frame.where("ms < 10").union(frame.where("ms > 90"))` then has wrong rows, whatever the source does. Who has a
`load()` of its own for each filter is safe. Without `pushFilters` nothing is narrowed, and nothing is ever wrong;
startingTimestamp, endingTimestamp and subscribe narrow as well.

Spark takes a reader that has `pushFilters` only where it is about to push filters, and refuses it elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.pipeline.catalog import Catalog, catalog
from rlite_pubsub.pipeline.options import SourceOptions, id_of
from rlite_pubsub.pipeline.reading.fetching import read
from rlite_pubsub.pipeline.reading.offsets import ending, kept, starting
from rlite_pubsub.pipeline.reading.partition import TopicPartition
from rlite_pubsub.pipeline.reading.planning import Window, plan
from rlite_pubsub.pipeline.schema import check_wanted
from rlite_pubsub.pipeline.topics import NOTHING
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

PUSHES = "pyspark.sql.worker.data_source_pushdown_filters"
"""Loaded where Spark pushes filters."""
_SIGN = 1 << 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def reader_class(options: SourceOptions) -> type[TopicReader]:
    """Return the class that reads a batch in this process."""
    return FilteringReader if options.push_filters and _is_pushing() else TopicReader


def _is_pushing() -> bool:
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return PUSHES in sys.modules or (spec is not None and spec.name == PUSHES)


class TopicReader(DataSourceReader):
    """Reads the topics of one query."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_wanted(schema, options)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[TopicPartition]:
        found = catalog(self._options)
        return plan(found, self.narrowed(windows(found, self._options)), self._options.min_partitions)

    def narrowed(self, windows: list[Window]) -> list[Window]:
        """Return the parts that filters leave."""
        return windows

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, self._schema, partition)


def windows(found: Catalog, options: SourceOptions) -> list[Window]:
    """Return the ids between which a batch reads each topic. Raises DataLoss."""
    if options.ranges is not None:
        return [
            (name, kept(options, text_of(name), after, found.extent(name)), upto)
            for name, after, upto in options.ranges
        ]
    read = []
    for text, name in sorted(found.names().items()):
        there = found.extent(name) or NOTHING
        after = starting(options, text, there)
        read.append((name, after, min(ending(options, text, there), there.last)))
    return read


class FilteringReader(TopicReader):
    """A reader that is told of filters before it plans."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._topics: set[str] | None = None
        self._ids: set[Id] | None = None
        self._low_ms, self._high_ms = 0, entry_ids.PART_MAX

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """All of them are Spark's to evaluate, too."""
        for one in filters:
            attribute: tuple[str, ...] = getattr(one, "attribute", ())
            if len(attribute) == 1:
                self._note(attribute[0], one)
        return filters

    def _note(self, column: str, one: Filter) -> None:
        if column in ("topic", "id"):
            if isinstance(one, EqualTo | EqualNullSafe):
                self._note_words(column, [one.value])
            elif isinstance(one, In):
                self._note_words(column, list(one.value))
        elif column in ("ms", "timestamp") and isinstance(
            one, EqualTo | EqualNullSafe | LessThan | LessThanOrEqual | GreaterThan | GreaterThanOrEqual
        ):
            ms = _ms_of(column, one.value)
            if ms is not None and 0 <= ms < _SIGN:
                if not isinstance(one, LessThan | LessThanOrEqual):
                    self._low_ms = max(self._low_ms, ms)
                if not isinstance(one, GreaterThan | GreaterThanOrEqual):
                    self._high_ms = min(self._high_ms, ms)

    def _note_words(self, column: str, values: list[object]) -> None:
        words = {value for value in values if isinstance(value, str)}
        if column == "topic":
            self._topics = words if self._topics is None else self._topics & words
        else:
            ids = {entry_id for word in words if (entry_id := _id_or_none(word)) is not None}
            self._ids = ids if self._ids is None else self._ids & ids

    def narrowed(self, windows: list[Window]) -> list[Window]:
        found = []
        for name, after, upto in windows:
            if self._topics is not None and text_of(name) not in self._topics:
                continue
            low = entry_ids.before((self._low_ms, 0)) or entry_ids.MIN
            high = (self._high_ms, entry_ids.PART_MAX)
            if upto[0] >= _SIGN:  # such an id's columns are negative numbers: below all others
                high = entry_ids.MAX
                low = low if self._low_ms else entry_ids.MIN
            if self._ids is not None:
                if not self._ids:
                    continue
                low = max(low, entry_ids.before(min(self._ids)) or entry_ids.MIN)
                high = min(high, max(self._ids))
            found.append((name, max(after, low), min(upto, high)))
        return found


def _id_or_none(word: str) -> Id | None:
    try:
        entry_id = id_of(word)
    except ValueError:
        return None
    return entry_id if entry_ids.text(entry_id).decode() == word else None


def _ms_of(column: str, value: object) -> int | None:
    """Return the millisecond that holds this value, which need not be its beginning."""
    if column == "ms":
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, datetime) and value.tzinfo is not None:
        since = value - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    return None
