"""The part that one task of Spark's reads: ranges of topics, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from rlite_pubsub.pipeline.connection import connect
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.reading.fetching import entries
from rlite_pubsub.pipeline.reading.rows import FetchedRows
from rlite_pubsub.pipeline.reading.spans import EntrySpan
from rlite_pubsub.pipeline.schema import wanted
from rlite_pubsub.pipeline.spark.worker import settle
from rlite_pubsub.storage.topics import entry_ids

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class TopicPartition(InputPartition):
    """Spans, in order."""

    def __init__(self, spans: Sequence[EntrySpan]) -> None:
        super().__init__(spans)
        self.spans = spans

    def __repr__(self) -> str:
        told = [
            f"{span.topic!r} ({entry_ids.text(span.after).decode()}, {entry_ids.text(span.upto).decode()}]"
            for span in self.spans
        ]
        return f"TopicPartition({', '.join(told)})"


def partitions_of(shares: Iterable[Sequence[EntrySpan]]) -> list[TopicPartition]:
    """Return one for each share of a plan."""
    return [TopicPartition(tuple(spans)) for spans in shares]


def read(options: SourceOptions, schema: StructType, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """All rows of a partition, batch by batch. Raises DataLoss, ValueRefused, and what cold/block.py raises."""
    from pyspark.sql.pandas.types import to_arrow_schema

    settle()
    if not isinstance(partition, TopicPartition):
        return  # there is nothing to read, and Spark has made one of its own
    rows = FetchedRows(
        wanted(schema, options), to_arrow_schema(schema, timezone="UTC"), is_permissive=options.is_permissive
    )
    client = None if options.url is None else connect(options)
    for span in partition.spans:
        for batch in entries(client, span, complete=options.fail_on_data_loss, has_fields=rows.has_fields):
            if batch.num_rows:
                yield rows.of(batch)
