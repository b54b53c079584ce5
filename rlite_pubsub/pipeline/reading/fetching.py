"""The entries of a span, from a block, the server or the store, as columns (cold/columns.py).

A block that is not there any more was compacted, or dropped, after it was planned: what is missing comes from the
server then, which has it in another block, or says that it is lost. Without a server it is lost. A block that is
damaged is an error.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import redis

from rlite_pubsub.cold import block
from rlite_pubsub.cold.columns import as_signed
from rlite_pubsub.cold.errors import BlockMissing
from rlite_pubsub.cold.origin import text_of
from rlite_pubsub.cold.plain_entries import batch_of
from rlite_pubsub.pipeline.connection import retry
from rlite_pubsub.pipeline.errors import DataLoss
from rlite_pubsub.pipeline.reading.offsets import skipped
from rlite_pubsub.pipeline.reading.spans import ColdPiece, EntrySpan
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import Id

ENTRIES_AT_ONCE = 20_000
BYTES_AT_ONCE = 4 << 20
_OF_IDS = ("topic", "ms", "seq")
_ALL = (*_OF_IDS, "fields")
_PAUSE_S = 0.1
_NO_TOPIC = "no such key"


def entries(
    client: redis.Redis | None, span: EntrySpan, *, complete: bool, has_fields: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield all of them, in order, as columns, without `fields` where nobody needs these. `complete`: raises DataLoss
    if any are lost."""
    after = span.after
    if span.cold is not None:
        try:
            for reached, batch in _from_block(span, span.cold, _ALL if has_fields else _OF_IDS):
                yield batch
                after = reached
        except BlockMissing as failure:
            if client is None:
                what = f"{failure.path}: {failure.reason}"
                if complete:
                    raise DataLoss(text_of(span.topic), what) from failure
                skipped(text_of(span.topic), what)
                return
        else:
            return
    assert client is not None, "what is in no block is planned where there is a server"
    yield from _from_server(client, span._replace(after=after), complete=complete)


# -- from a block, row group by row group


def _from_block(span: EntrySpan, piece: ColdPiece, names: Sequence[str]) -> Iterator[tuple[Id, pa.RecordBatch]]:
    """(up to which id it goes, entries), in order. Raises what cold/block.py raises."""
    info = block.complete(piece.place, piece.info)
    for number, group in enumerate(info.groups):
        if group.last <= span.after:
            continue
        if group.first > span.upto:
            return
        batch = _named(block.read_batch(piece.place, info, number, names), span.topic)
        if group.first <= span.after or group.last > span.upto:
            batch = batch.filter(_within(batch, span.after, span.upto))
        gone = [one for one in piece.deleted if group.first <= one <= group.last]
        if gone:
            batch = batch.filter(_without(batch, gone))
        yield min(group.last, span.upto), batch


def _named(batch: pa.RecordBatch, topic: bytes) -> pa.RecordBatch:
    """Return a block has the name that its topic had when it was sealed, or the topic that this one is a copy of."""
    text = text_of(topic)
    if batch.column("topic")[0].as_py() == text:
        return batch
    return batch.set_column(0, batch.schema.field("topic"), pa.repeat(pa.scalar(text, pa.string()), batch.num_rows))


def _within(batch: pa.RecordBatch, after: Id, upto: Id) -> pa.Array:
    """Return which rows have ids above the one, up to and including the other."""
    ms, seq = (batch.column(name).view(pa.uint64()) for name in ("ms", "seq"))
    low_ms, low_seq, high_ms, high_seq = (pa.scalar(half, pa.uint64()) for half in (*after, *upto))
    above = pc.or_(pc.greater(ms, low_ms), pc.and_(pc.equal(ms, low_ms), pc.greater(seq, low_seq)))
    below = pc.or_(pc.less(ms, high_ms), pc.and_(pc.equal(ms, high_ms), pc.less_equal(seq, high_seq)))
    return pc.and_(above, below)


def _without(batch: pa.RecordBatch, gone: list[Id]) -> pa.Array:
    """Return which rows have none of these ids."""
    dead = {(as_signed(ms), as_signed(seq)) for ms, seq in gone}
    suspects = pc.is_in(batch.column("ms"), pa.array(sorted({ms for ms, _ in dead}), pa.int64()))
    if not pc.any(suspects).as_py():
        return pc.invert(suspects)
    halves = zip(batch.column("ms").to_pylist(), batch.column("seq").to_pylist(), strict=True)
    return pa.array([half not in dead for half in halves], pa.bool_())


# -- from the server


def _from_server(client: redis.Redis, span: EntrySpan, *, complete: bool) -> Iterator[pa.RecordBatch]:
    """All entries of a span, in order. `complete`: raises DataLoss if any were trimmed away before they were read.

    The next piece is asked for before the last one is turned into columns, so that both sides work. A connection that
    breaks is reopened, and what is missing is asked for again."""
    for values in _pieces(client, span, complete):
        yield batch_of(values, span.topic)


def _pieces(client: redis.Redis, span: EntrySpan, complete: bool) -> Iterator[list[bytes]]:
    after = span.after
    connection: Any = None
    failures = 0
    is_asked = False
    is_strict = True
    pool = client.connection_pool
    try:
        while True:
            try:
                if connection is None:
                    connection = pool.get_connection()
                if not is_asked:
                    _ask(connection, span, after, is_strict)
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
                meant = _meant(refusal, span)
                if not complete and is_strict and isinstance(meant, DataLoss):
                    skipped(meant.topic, meant.what)
                    if str(refusal) == _NO_TOPIC:
                        return
                    is_strict = False
                    continue
                raise meant from refusal
            failures = 0
            if not values:
                return
            after = entry_ids.unpack(Chunk(b"", values[-1]).last)
            is_over = after >= span.upto
            if not is_over:
                with contextlib.suppress(redis.ConnectionError, redis.TimeoutError):  # it is asked again, then
                    _ask(connection, span, after, is_strict)
                    is_asked = True
            yield values
            if is_over:
                return
    finally:
        if connection is not None:
            if is_asked:
                connection.disconnect()  # an answer is under way that nobody wants
            pool.release(connection)


def _ask(connection: Any, span: EntrySpan, after: Id, complete: bool) -> None:
    limits: tuple[str | int, ...] = ("COUNT", ENTRIES_AT_ONCE, "BYTES", BYTES_AT_ONCE)
    if complete:
        limits += ("COMPLETE",)
    connection.send_command(
        "TOPIC.EXPORT", span.topic, b"(" + entry_ids.text(after), entry_ids.text(span.upto), *limits
    )


def _meant(refusal: redis.ResponseError, span: EntrySpan) -> Exception:
    text = str(refusal)
    if text.startswith("DATALOSS"):
        return DataLoss(text_of(span.topic), text.removeprefix("DATALOSS "))
    if text == _NO_TOPIC:
        low, high = (entry_ids.text(edge).decode() for edge in (span.after, span.upto))
        return DataLoss(text_of(span.topic), f"it was deleted: entries after {low}, up to {high}, are gone")
    return refusal
