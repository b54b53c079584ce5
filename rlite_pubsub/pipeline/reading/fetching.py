"""Entries of a span, from wherever they are: a block, or the server.

A block that is not there any more was compacted, or dropped, after it was planned: what is missing comes from the
server then, which has it in another block, or says that it is lost. A block that is damaged is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.cold.errors import BlockMissing
from rlite_pubsub.pipeline.reading import block_reading, exporting
from rlite_pubsub.pipeline.reading.partition import Span

if TYPE_CHECKING:
    import pyarrow as pa
    import redis


def entries(client: redis.Redis, span: Span, *, complete: bool) -> Iterator[pa.RecordBatch]:
    """All of them, in order, as columns. `complete`: raises DataLoss if any are lost."""
    after = span.after
    if span.cold is not None:
        try:
            for reached, batch in block_reading.batches(span, span.cold):
                yield batch
                after = reached
        except BlockMissing:
            pass
        else:
            return
    yield from exporting.batches(client, span._replace(after=after), complete=complete)
