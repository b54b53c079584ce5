"""Batch reads. What a DataFrame holds is fixed when it is planned: which ids of which topics.

Entries that come later are not in it, and entries that are gone by the time they are read are an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rlite_pubsub.pipeline.connection import connect
from rlite_pubsub.pipeline.options import Options
from rlite_pubsub.pipeline.reading.offsets import ending, starting
from rlite_pubsub.pipeline.reading.partition import TopicPartition
from rlite_pubsub.pipeline.reading.planning import Window, plan
from rlite_pubsub.pipeline.schema import check_wanted
from rlite_pubsub.pipeline.spark.worker import settle
from rlite_pubsub.pipeline.topics import NOTHING, extent, find_topics

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class TopicReader(DataSourceReader):
    """Of one query."""

    def __init__(self, options: Options, schema: StructType) -> None:
        check_wanted(schema)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[TopicPartition]:
        client = connect(self._options)
        return plan(client, self.narrowed(self._windows()), self._options.min_partitions, self._options.cold_path)

    def narrowed(self, windows: list[Window]) -> list[Window]:
        """Those parts that filters leave."""
        return windows

    def _windows(self) -> list[Window]:
        client = connect(self._options)
        windows = []
        for text, name in sorted(find_topics(client, self._options).items()):
            there = extent(client, name) or NOTHING
            after = starting(self._options, text, there)
            windows.append((name, after, min(ending(self._options, text, there), there.last)))
        return windows

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, self._schema, partition)


def read(options: Options, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """What a task does."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from rlite_pubsub.pipeline.reading.fetching import entries
    from rlite_pubsub.pipeline.reading.rows import Rows

    settle()
    if not isinstance(partition, TopicPartition):
        return  # there is nothing to read, and Spark has made one of its own
    rows = Rows(to_arrow_schema(schema, timezone="UTC"))
    client = connect(options)
    for span in partition.spans:
        for batch in entries(client, span, complete=options.fail_on_data_loss):
            if batch.num_rows:
                yield rows.of(batch)
