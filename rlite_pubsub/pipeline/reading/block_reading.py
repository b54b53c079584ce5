"""Entries of a span that lies in a block, as batches of columns, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from rlite_pubsub.cold import block
from rlite_pubsub.cold.columns import as_signed
from rlite_pubsub.pipeline.reading.partition import ColdPiece, Span
from rlite_pubsub.storage.topics.entry_ids import Id


def batches(span: Span, piece: ColdPiece) -> Iterator[tuple[Id, pa.RecordBatch]]:
    """(up to which id it goes, entries), in order. Raises what cold/block.py raises."""
    info = block.complete(piece.place, piece.info)
    for number, group in enumerate(info.groups):
        if group.last <= span.after:
            continue
        if group.first > span.upto:
            return
        batch = block.read_batch(piece.place, info, number)
        if group.first <= span.after or group.last > span.upto:
            batch = batch.filter(_within(batch, span.after, span.upto))
        gone = [one for one in piece.deleted if group.first <= one <= group.last]
        if gone:
            batch = batch.filter(_without(batch, gone))
        yield min(group.last, span.upto), batch


def _within(batch: pa.RecordBatch, after: Id, upto: Id) -> pa.Array:
    """Which rows have ids above the one, up to and with the other."""
    ms, seq = (batch.column(name).view(pa.uint64()) for name in ("ms", "seq"))
    low_ms, low_seq, high_ms, high_seq = (pa.scalar(half, pa.uint64()) for half in (*after, *upto))
    above = pc.or_(pc.greater(ms, low_ms), pc.and_(pc.equal(ms, low_ms), pc.greater(seq, low_seq)))
    below = pc.or_(pc.less(ms, high_ms), pc.and_(pc.equal(ms, high_ms), pc.less_equal(seq, high_seq)))
    return pc.and_(above, below)


def _without(batch: pa.RecordBatch, gone: list[Id]) -> pa.Array:
    """Which rows have none of these ids."""
    dead = {(as_signed(ms), as_signed(seq)) for ms, seq in gone}
    suspects = pc.is_in(batch.column("ms"), pa.array(sorted({ms for ms, _ in dead}), pa.int64()))
    if not pc.any(suspects).as_py():
        return pc.invert(suspects)
    halves = zip(batch.column("ms").to_pylist(), batch.column("seq").to_pylist(), strict=True)
    return pa.array([half not in dead for half in halves], pa.bool_())
