"""The sinks: what tasks have staged (staging.py) one commit appends, partition by partition, rows in order.

A batch write is all rows or none. With `application` and `batch` it may be repeated, and is done once: a batch at or
below the application's last one does nothing. Without them each write is an application of its own.

A stream appends each batch once, whatever is killed and restarted meanwhile. The application is the query: its id
stands in the checkpoint, and so is the same after a restart. (A new checkpoint is a new query.) The batch is the
query's own number. A batch that was committed before the driver died is committed again by the next one, which does
nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from rlite_pubsub.pipeline.connection import ask, connect, make_store
from rlite_pubsub.pipeline.errors import OptionRefused
from rlite_pubsub.pipeline.options import SourceOptions
from rlite_pubsub.pipeline.spark.worker import settle
from rlite_pubsub.pipeline.writing.row_columns import RowColumns, row_columns

if TYPE_CHECKING:
    import pyarrow as pa
    import redis
    from pyspark.sql.types import StructType

FORGET_MS = 24 * 3600 * 1000
"""How long a commit of a write without an application is remembered: until nobody repeats the request any more."""
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"
"""Local properties of a task, in which Spark says whose it is."""


class Staged(WriterCommitMessage):
    """A task's report to the driver."""

    def __init__(self, application: str, batch: int, partition: int, attempt: int, rows: int) -> None:
        self.application = application
        self.batch = batch
        self.partition = partition
        self.attempt = attempt
        self.rows = rows


class TopicWriter(DataSourceArrowWriter):
    """Writes a frame to topics."""

    def __init__(self, options: SourceOptions, schema: StructType, overwrite: bool) -> None:
        self._columns = row_columns(options, schema)
        if overwrite:
            raise OptionRefused('mode: a topic is appended to, say mode("append")')
        self._options = options
        self._forget_ms = 0 if options.batch is not None else FORGET_MS
        self._application = options.application or f"write-{secrets.token_hex(16)}"
        if options.application is not None and options.batch is None:
            raise OptionRefused("application: a batch write needs batch, too: a number that grows")
        self._batch = options.batch or 0
        make_store(options)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return staged(self._options, self._columns, self._application, self._batch, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        commit(self._options, messages, self._forget_ms)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        unstage(connect(self._options), self._application, self._batch)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    """Writes a streaming query to topics, exactly once."""

    def __init__(self, options: SourceOptions, schema: StructType, overwrite: bool) -> None:
        self._columns = row_columns(options, schema)
        if overwrite:
            raise OptionRefused('outputMode: a topic is appended to, say outputMode("append")')
        if options.batch is not None:
            raise OptionRefused("batch: is the query's own number")
        make_store(options)
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        query, batch = context.getLocalProperty(QUERY), context.getLocalProperty(BATCH)
        if query is None or batch is None:
            raise RuntimeError("Spark does not say which query and which batch this is")
        return staged(self._options, self._columns, self._options.application or query, int(batch), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        for message in messages:
            if isinstance(message, Staged) and message.batch != batchId:
                raise RuntimeError(f"a task has staged batch {message.batch}, but this is batch {batchId}")
        commit(self._options, messages, 0)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Leave what killed tasks have staged: the server removes it a day later."""
        applications = {message.application for message in messages if isinstance(message, Staged)}
        for application in applications:
            unstage(connect(self._options), application, batchId)


def staged(
    options: SourceOptions, columns: RowColumns, application: str, batch: int, batches: Iterator[pa.RecordBatch]
) -> Staged:
    """Stage the rows of a task."""
    from pyspark import TaskContext

    from rlite_pubsub.pipeline.writing.staging import Staging

    settle()
    context = TaskContext.get()
    assert context is not None
    partition = context.partitionId()
    staging = Staging(connect(options), application, batch, partition, options.topic, columns)
    staging.stage(batches)
    return Staged(application, batch, partition, staging.attempt, staging.rows)


def commit(options: SourceOptions, messages: Sequence[WriterCommitMessage | None], forget_ms: int) -> None:
    """Commit, in the driver, once all tasks are done. Returns when it is on the server's disk."""
    told = [message for message in messages if isinstance(message, Staged)]
    if len(told) != len(messages):
        raise RuntimeError("a task did not say what it staged")
    if not told:
        return
    application, batch = told[0].application, told[0].batch
    words: list[str | int] = ["FORGET", forget_ms] if forget_ms else []
    for one in sorted(told, key=lambda one: one.partition):
        if one.rows:
            words += [one.partition, one.attempt, one.rows]
    client = connect(options)
    ask(client, "TOPIC.COMMIT", application, batch, *words)
    ask(client, "TOPIC.SYNC")
    unstage(client, application, batch)


def unstage(client: redis.Redis, application: str, batch: int) -> None:
    """Remove what was staged up to this batch, in steps between which the server does other things."""
    while ask(client, "TOPIC.UNSTAGE", application, batch):
        pass
