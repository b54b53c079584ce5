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
from rlite_pubsub.storage.topics import entry_ids

_NOTHING = pa.scalar(b"", pa.binary())
PIECE_BYTES = 1 << 20
PIECE_ROWS = 8192


# -- Rows become what an entry has behind its id: the array of its fields and values, in wire format. Arrow does it.
#
#    headers    all fields, as they are; without them
#    key        the field `key`, unless it is null
#    value      the field `value`


def bodies_of(batch: pa.RecordBatch) -> pa.BinaryArray:
    """One for each row. Raises RowRefused where a row has nothing that an entry could hold."""
    names = batch.schema.names
    if "headers" in names:
        return _of_headers(batch.column("headers"))
    value = batch.column("value")
    if value.null_count:
        raise RowRefused("a value is null: an entry has no such thing")
    value = _sized(_binary(value))
    plain = _joined(b"*2\r\n$5\r\nvalue\r\n", value)
    if "key" not in names or batch.column("key").null_count == batch.num_rows:
        return plain
    key = _binary(batch.column("key"))
    with_key = _joined(b"*4\r\n$3\r\nkey\r\n", _sized(pc.fill_null(key, b"")), b"$5\r\nvalue\r\n", value)
    return with_key if not key.null_count else pc.if_else(pc.is_valid(key), with_key, plain)


def _of_headers(headers: pa.Array) -> pa.BinaryArray:
    if pa.types.is_large_list(headers.type):
        headers = headers.cast(pa.list_(headers.type.value_type))
    lengths = pc.list_value_length(headers)
    if headers.null_count or pc.any(pc.equal(lengths, 0)).as_py():
        raise RowRefused("headers are null or empty: an entry has at least one field")
    flat = headers.flatten()
    names, values = flat.flatten()
    if flat.null_count or names.null_count or values.null_count:
        raise RowRefused("a header, its name or its value is null: an entry has no such thing")
    pairs = _joined(_sized(_binary(names)), _sized(_binary(values)))
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends])
    fields = pc.binary_join(pa.ListArray.from_arrays(offsets, pairs), _NOTHING)
    return _joined(b"*", _text(pc.multiply(lengths, 2)), b"\r\n", fields)


def _binary(column: pa.Array) -> pa.Array:
    """Text as its bytes."""
    return column if pa.types.is_binary(column.type) else column.cast(pa.binary())


def _sized(values: pa.Array) -> pa.Array:
    return _joined(b"$", _text(pc.binary_length(values)), b"\r\n", values, b"\r\n")


def _text(numbers: pa.Array) -> pa.Array:
    return numbers.cast(pa.string()).cast(pa.binary())


def _joined(*pieces: pa.Array | bytes) -> pa.Array:
    scalars = [pa.scalar(piece, pa.binary()) if isinstance(piece, bytes) else piece for piece in pieces]
    return pc.binary_join_element_wise(*scalars, _NOTHING)


# -- Pieces of rows, sent one after the other.


class _Run(NamedTuple):
    """Rows for one topic that wait to be staged."""

    bodies: list[bytes]
    ids: list[bytes]
    rows: int
    size: int


class Staging:
    """Of one attempt at one partition."""

    def __init__(self, client: redis.Redis, application: str, batch: int, partition: int, topic: str | None) -> None:
        self._client = client
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
                for run in _cut(rows):
                    self._add(topic, run)
        for topic in list(self._waiting):
            self._send(topic)

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if not batch.num_rows:
            return
        if self._topic is not None:
            yield self._topic, batch
            return
        topics = batch.column("topic")
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


def _cut(batch: pa.RecordBatch) -> Iterator[_Run]:
    """A batch's rows, in pieces."""
    bodies = bodies_of(batch)
    ids = _packed_ids(batch)
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


def _packed_ids(batch: pa.RecordBatch) -> bytes:
    """Of the column `id`, if there is one."""
    if "id" not in batch.schema.names:
        return b""
    try:
        return b"".join([entry_ids.pack(id_of(text)) for text in batch.column("id").to_pylist()])
    except (ValueError, TypeError) as failure:
        raise RowRefused(f"column id: {failure}; leave the column out, and the server makes ids") from failure
