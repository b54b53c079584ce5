"""Entries of a span, from the server, as batches of columns.

The next piece is asked for before the last one is turned into columns, so that both sides work. A connection that
breaks is opened anew, and what is missing is asked for again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import redis

from rlite_pubsub.cold.columns import text_of
from rlite_pubsub.pipeline.connection import retry
from rlite_pubsub.pipeline.errors import DataLoss
from rlite_pubsub.pipeline.reading.partition import Span
from rlite_pubsub.pipeline.reading.plain_entries import batch_of
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import Id

ENTRIES_AT_ONCE = 20_000
BYTES_AT_ONCE = 4 << 20
_PAUSE_S = 0.1


def batches(client: redis.Redis, span: Span, *, complete: bool) -> Iterator[pa.RecordBatch]:
    """All entries of a span, in order. `complete`: raises DataLoss if any were trimmed away before they were read."""
    for values in _pieces(client, span, complete):
        yield batch_of(values, span.topic)


def _pieces(client: redis.Redis, span: Span, complete: bool) -> Iterator[list[bytes]]:
    after = span.after
    connection: Any = None
    failures = 0
    is_asked = False
    pool = client.connection_pool
    try:
        while True:
            try:
                if connection is None:
                    connection = pool.get_connection()
                if not is_asked:
                    _ask(connection, span, after, complete)
                    is_asked = True
                values = connection.read_response()
                is_asked = False
            except (redis.ConnectionError, redis.TimeoutError):
                failures += 1
                if failures > retry().get_retries():
                    raise
                if connection is not None:
                    connection.disconnect()
                is_asked = False
                time.sleep(_PAUSE_S * failures)
                continue
            except redis.ResponseError as refusal:
                is_asked = False
                raise _meant(refusal, span) from refusal
            failures = 0
            if not values:
                return
            after = entry_ids.unpack(Chunk(b"", values[-1]).last)
            is_over = after >= span.upto
            if not is_over:
                with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):  # it is asked again, then
                    _ask(connection, span, after, complete)
                    is_asked = True
            yield values
            if is_over:
                return
    finally:
        if connection is not None:
            if is_asked:
                connection.disconnect()  # an answer is under way that nobody wants
            pool.release(connection)


def _ask(connection: Any, span: Span, after: Id, complete: bool) -> None:
    limits: tuple[str | int, ...] = ("COUNT", ENTRIES_AT_ONCE, "BYTES", BYTES_AT_ONCE)
    if complete:
        limits += ("COMPLETE",)
    connection.send_command(
        "TOPIC.EXPORT", span.topic, b"(" + entry_ids.text(after), entry_ids.text(span.upto), *limits
    )


def _meant(refusal: redis.ResponseError, span: Span) -> Exception:
    text = str(refusal)
    if text.startswith("DATALOSS"):
        return DataLoss(text_of(span.topic), text.removeprefix("DATALOSS "))
    if text == "no such key":
        low, high = (entry_ids.text(edge).decode() for edge in (span.after, span.upto))
        return DataLoss(text_of(span.topic), f"it was deleted: entries behind {low}, up to {high}, are gone")
    return refusal
