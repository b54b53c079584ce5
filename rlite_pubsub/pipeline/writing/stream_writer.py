"""The exactly-once sink: each batch of a query is appended once, whatever is killed and started anew meanwhile.

The application is the query: its id stands in the checkpoint, and so is the same after a restart. (A new checkpoint is
a new query.) The batch is the query's own number. A batch that was committed before the driver died is committed again
by the next one, which does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from rlite_pubsub.pipeline.connection import connect
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.options import Options
from rlite_pubsub.pipeline.writing.writer import Staged, check_columns, commit, staged, unstage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of a task, in which Spark says whose it is."""


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Of one query."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        check_columns(options, schema)
        if overwrite:
            raise OptionRefused('outputMode: a topic is appended to, say outputMode("append")')
        if options.batch is not None:
            raise OptionRefused("batch: is the query's own number")
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
        if query is None or batch is None:
            raise RuntimeError("Spark does not say which query and which batch this is")
        return staged(self._options, self._options.application or query, int(batch), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        for message in messages:
            if isinstance(message, Staged) and message.batch != batchId:
                raise RuntimeError(f"a task has staged batch {message.batch}, but this is batch {batchId}")
        commit(self._options, messages, 0)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """What tasks that were killed have staged is removed by the server, a day later."""
        applications = {message.application for message in messages if isinstance(message, Staged)}
        for application in applications:
            unstage(connect(self._options), application, batchId)
