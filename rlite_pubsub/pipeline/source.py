"""`spark.read.format("rlite")` and its three sisters. What each needs is imported when it is asked for.

Its columns are in schema.py, its options in options.py.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from rlite_pubsub.pipeline.options import SourceOptions


class RliteDataSource(DataSource):
    """One `load()` or `save()`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Note how far topics go: that is what a DataFrame holds, whenever and however often Spark plans it. Raises
        OptionRefused."""
        from rlite_pubsub.pipeline.catalog import catalog
        from rlite_pubsub.pipeline.reading.offsets import Extents, extents

        super().__init__(options)
        known = self._options()
        self._extents: Extents = extents(catalog(known)) if known.is_subscribed else {}

    @classmethod
    def name(cls) -> str:
        return "rlite"

    def schema(self) -> StructType:
        from rlite_pubsub.pipeline.schema import schema_of

        options = self._options()
        if not options.infer_fields:
            return schema_of(options)
        from rlite_pubsub.pipeline.catalog import catalog, samples

        return schema_of(options, samples(catalog(options)))

    def reader(self, schema: StructType) -> DataSourceReader:
        from rlite_pubsub.pipeline.reading.reader import TopicReader

        return TopicReader(self._options().for_reading(), schema, self._extents)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from rlite_pubsub.pipeline.reading.stream_reader import TopicStreamReader

        return TopicStreamReader(self._options().for_streaming(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from rlite_pubsub.pipeline.writing.writer import TopicWriter

        return TopicWriter(self._options().for_writing(), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from rlite_pubsub.pipeline.writing.writer import TopicStreamWriter

        return TopicStreamWriter(self._options().for_writing(), schema, overwrite)

    def _options(self) -> SourceOptions:
        from rlite_pubsub.pipeline.options import SourceOptions

        return SourceOptions.of(self.options)
