"""Streaming reads. Offsets are `{topic: id}`; how far a batch reads is decided here, and tasks read what is in it.

A checkpoint wins over options: they say where a query begins that has none. A topic that is found later is read from
its beginning. Entries between the checkpoint and what there is are an error if they are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from rlite_pubsub.pipeline.catalog import Catalog, catalog
from rlite_pubsub.pipeline.options import LATEST, SourceOptions, id_of
from rlite_pubsub.pipeline.reading.offsets import Offsets, kept, known, starting, text
from rlite_pubsub.pipeline.reading.partition import TopicPartition, partitions_of, read
from rlite_pubsub.pipeline.reading.planning import Window, plan
from rlite_pubsub.pipeline.schema import wanted
from rlite_pubsub.pipeline.topics import NOTHING, TopicExtent
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType



def share(waiting: Mapping[str, int], most: int) -> dict[str, int]:
    """Return how many entries each topic gives to one batch of at most `most`, in proportion to what each has; every
    topic that has any gives at least one, as far as they go round."""
    total = sum(waiting.values())
    if total <= most:
        return dict(waiting)
    shares = {topic: count * most // total for topic, count in waiting.items()}
    left = most - sum(shares.values())
    for topic in sorted(waiting, key=lambda topic: (shares[topic], topic)):  # those without any come first
        if left and shares[topic] < waiting[topic]:
            shares[topic] += 1
            left -= 1
    return shares


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the topics of one streaming query, in its driver."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        wanted(schema, options)
        self._options = options
        self._schema = schema
        self._target: dict[str, Id] | None = None  # Trigger.AvailableNow: no further

    def initialOffset(self) -> Offsets:
        offsets = {}
        for topic, name in self._topics().items():
            there = known(self._options, topic, self._extent(name))
            offsets[topic] = text(starting(self._options, topic, there, LATEST))
        return offsets

    def getDefaultReadLimit(self) -> ReadLimit:
        most = self._options.max_offsets
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = {topic: (self._extent(name) or NOTHING).last for topic, name in self._topics().items()}

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        windows = self._open_windows(start)
        if isinstance(limit, ReadMaxRows):
            windows = self._limited(windows, limit.max_rows)
        return {topic: text(upto) for topic, (_, _, upto) in windows.items()}

    def reportLatestOffset(self) -> Offsets:
        return {topic: text((self._extent(name) or NOTHING).last) for topic, name in self._topics().items()}

    def partitions(self, start: Offsets, end: Offsets) -> list[TopicPartition]:
        names = self._topics()
        windows = []
        for topic, upto in sorted(end.items()):
            name = names.get(topic, topic.encode())
            there = self._extent(name)
            after = self._after(start, topic, there)
            windows.append((name, after, id_of(upto)))
        return partitions_of(plan(self._catalog(), windows, self._options.min_partitions))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, self._schema, partition)

    # -- what is there

    def _catalog(self) -> Catalog:
        return catalog(self._options)

    def _topics(self) -> dict[str, bytes]:
        return self._catalog().names()

    def _extent(self, name: bytes) -> TopicExtent | None:
        return self._catalog().extent(name)

    def _after(self, start: Offsets, topic: str, there: TopicExtent | None) -> Id:
        """Return where a batch goes on in a topic; at its beginning, if the query did not know of it."""
        if topic not in start:
            return (there or NOTHING).trimmed
        return kept(self._options, topic, id_of(start[topic]), there)

    def _open_windows(self, start: Offsets) -> dict[str, Window]:
        """Return, for each topic, everything after `start`."""
        names = self._topics()
        for topic in start.keys() - names.keys():  # deleted, or no longer subscribed to
            self._after(start, topic, self._extent(topic.encode()))
        windows: dict[str, Window] = {}
        for topic, name in sorted(names.items()):
            if self._target is not None and topic not in self._target:
                continue
            there = self._extent(name)
            after = self._after(start, topic, there)
            upto = max((there or NOTHING).last, after)
            if self._target is not None:
                upto = max(min(upto, self._target[topic]), after)
            windows[topic] = name, after, upto
        return windows

    def _limited(self, windows: dict[str, Window], most: int) -> dict[str, Window]:
        """Return the same, but at most `most` entries: each topic has a share in proportion to what it has."""
        there = self._catalog()
        open_ones = {topic: window for topic, window in windows.items() if window[1] < window[2]}
        found = {topic: there.marks(*window, most, most) for topic, window in open_ones.items()}
        shares = share({topic: told.entries for topic, told in found.items()}, most)
        limited = dict(windows)
        for topic, told in found.items():
            name, after, upto = windows[topic]
            wanted = shares[topic]
            if not told.entries:
                continue  # nothing but ids of deleted entries
            if wanted == 0:
                limited[topic] = name, after, after
            elif wanted < told.entries:
                last = there.marks(name, after, upto, wanted, wanted).last
                limited[topic] = name, after, last or after
            elif told.entries == most:
                limited[topic] = name, after, told.last or upto
        return limited
