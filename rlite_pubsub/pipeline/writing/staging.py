"""A task stages its rows on the server: pieces of at most about a megabyte, each for one topic, in the rows' order.

What a task has staged nobody sees before the commit; a task that is killed, or runs twice, stages under an attempt of
its own.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import redis

from rlite_pubsub.pipeline.connection import ask
from rlite_pubsub.pipeline.errors import RowRefused
from rlite_pubsub.pipeline.options import id_of
from rlite_pubsub.pipeline.writing.bodies import bodies_of
from rlite_pubsub.pipeline.writing.row_columns import RowColumns
from rlite_pubsub.storage.topics import entry_ids

PIECE_BYTES = 1 << 20
PIECE_ROWS = 8192



class _Run(NamedTuple):
    """Rows for one topic that wait to be staged."""

    bodies: list[bytes]
    ids: list[bytes]
    rows: int
    size: int


class Staging:
    """Stages the rows of one attempt at one partition."""

    def __init__(
        self,
        client: redis.Redis,
        application: str,
        batch: int,
        partition: int,
        topic: str | None,
        columns: RowColumns,
    ) -> None:
        self._client = client
        self._columns = columns
        self._head = (application, batch, partition)
        self._topic = topic
        self.attempt = secrets.randbits(64)
        self.rows = 0
        self._pieces = 0
        self._waiting: dict[str, _Run] = {}

    def stage(self, batches: Iterable[pa.RecordBatch]) -> None:
        """All of these rows. Raises RowRefused."""
        for batch in batches:
            for topic, rows in self._by_topic(batch):
                for run in _cut(rows, self._columns):
                    self._add(topic, run)
        for topic in list(self._waiting):
            self._send(topic)

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if not batch.num_rows:
            return
        if self._topic is not None:
            yield self._topic, batch
            return
        assert self._columns.topic is not None
        topics = batch.column(self._columns.topic)
        if topics.null_count:
            raise RowRefused("a topic is null: say the option topic, or fill the column")
        names = pc.unique(topics).to_pylist()
        for name in names:
            yield name, batch if len(names) == 1 else batch.filter(pc.equal(topics, name))

    def _add(self, topic: str, run: _Run) -> None:
        before = self._waiting.get(topic)
        if before is not None:
            if before.size + run.size > PIECE_BYTES or before.rows + run.rows > PIECE_ROWS:
                self._send(topic)
            else:
                run = _Run(
                    before.bodies + run.bodies, before.ids + run.ids, before.rows + run.rows, before.size + run.size
                )
        self._waiting[topic] = run

    def _send(self, topic: str) -> None:
        run = self._waiting.pop(topic)
        ids = ("IDS", b"".join(run.ids)) if run.ids else ()
        head = (*self._head, self.attempt, self._pieces)
        ask(self._client, "TOPIC.STAGE", *head, topic, run.rows, b"".join(run.bodies), *ids)
        self._pieces += 1
        self.rows += run.rows


def _cut(batch: pa.RecordBatch, columns: RowColumns) -> Iterator[_Run]:
    """Yield a batch's rows, in pieces."""
    bodies = bodies_of(batch, columns)
    ids = b"" if columns.ids is None else _packed_ids(batch.column(columns.ids))
    _, ends, data = bodies.buffers()
    edges = memoryview(ends).cast("i")[bodies.offset : bodies.offset + len(bodies) + 1]
    content = memoryview(data)
    start = 0
    while start < len(bodies):
        stop = bisect_right(edges, edges[start] + PIECE_BYTES, start + 1) - 1
        stop = min(max(stop, start + 1), start + PIECE_ROWS, len(bodies))
        blob = bytes(content[edges[start] : edges[stop]])
        width = entry_ids.BYTES
        yield _Run([blob], [ids[width * start : width * stop]] if ids else [], stop - start, len(blob))
        start = stop


def _packed_ids(ids: pa.Array) -> bytes:
    try:
        return b"".join([entry_ids.pack(id_of(text)) for text in ids.to_pylist()])
    except (ValueError, TypeError) as failure:
        raise RowRefused(f"column id: {failure}; leave the column out, and the server makes ids") from failure
