"""Batch reads. What a DataFrame holds is fixed by `load()`: which ids of which topics.

Entries that come later are not in it, and entries that are gone by the time they are read are an error, however often
and in how many queries it is used. Spark plans some queries of one DataFrame together and others anew, and with
`spark.sql.python.filterPushdown.enabled` it takes the plan of the last filter for all of them: so nothing that it says
of filters is used here. subscribe, startingOffsets, startingTimestamp and their ends say what is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from rlite_pubsub.pipeline.catalog import catalog
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.reading.offsets import Extents, windows
from rlite_pubsub.pipeline.reading.partition import TopicPartition, partitions_of, read
from rlite_pubsub.pipeline.reading.planning import plan
from rlite_pubsub.pipeline.schema import wanted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class TopicReader(DataSourceReader):
    """Reads the topics of one query. `extents`: how far they went when the DataFrame was made."""

    def __init__(self, options: SourceOptions, schema: StructType, extents: Extents) -> None:
        wanted(schema, options)
        self._options = options
        self._schema = schema
        self._extents = extents

    def partitions(self) -> list[TopicPartition]:
        found = catalog(self._options)
        asked = windows(found, self._options, self._extents)
        return partitions_of(plan(found, asked, self._options.min_partitions))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read(self._options, self._schema, partition)
