"""A topic's oldest entries leave the hot log for a block, a few chunks at a time.

Law: the block is whole, on the disk and verified before the first of its entries leaves the hot log; from which of the
two an entry is read is one number, `sealed to`, which moves in the very commit that removes chunks. So a crash between
any two steps loses nothing and doubles nothing: the worker that comes after goes on where this one stood.

What was deleted since the block was written is missing from the chunks that are removed, and gets a tombstone. What was
trimmed stands below the topic's last trimmed id and needs none.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import Id

SLICE_CHUNKS = 64
"""Removed in one commit: other writers wait no longer than for these."""


class Contents(NamedTuple):
    """The contents of a block, in order."""

    ids: Sequence[bytes]
    """Packed."""
    sizes: Sequence[int]
    """Of the entries, as they are sent."""


def hot_bytes(topic: Topic) -> int:
    """Return how many bytes of a topic are not in blocks."""
    return topic.size_bytes - (topic.cold.state.live_bytes if topic.has_cold else 0)


def hot_from(topic: Topic) -> Id:
    """Return the lowest id that can be in the hot log."""
    if not topic.has_cold:
        return entry_ids.MIN
    return entry_ids.after(topic.cold.state.sealed_to) or entry_ids.MAX


def oldest(txn: Txn, topic: Topic, size_bytes: int) -> Iterator[Chunk]:
    """The oldest chunks, as many as make up this many bytes, but never the last: it is being written to. The store must
    not be changed meanwhile."""
    tail = chunks.last(txn, topic.number)
    if tail is None:
        return
    taken = 0
    for chunk in chunks.forward(txn, topic.number, hot_from(topic)):
        if chunk.key == tail.key or taken >= size_bytes:
            return
        taken += len(chunk.blob)
        yield chunk


def unfinished(txn: Txn, topic: Topic) -> BlockInfo | None:
    """Return the block whose entries have not all left the hot log."""
    if not topic.has_cold:
        return None
    block = cold_blocks.last(txn, topic.number)
    return block if block is not None and block.last > topic.cold.state.sealed_to else None


def begin(topic: Topic, block: BlockInfo) -> None:
    """A topic that `for_change` has found gets a block, none of whose entries has left the hot log."""
    txn = topic.keyspace.writing()
    topic.settle()
    cold_blocks.put(txn, topic.number, block)
    topic.begin_cold(entry_ids.before(block.first) or entry_ids.MIN)
    topic.keyspace.keep(topic)


def move(topic: Topic, block: BlockInfo, contents: Contents) -> bool:
    """The next few chunks leave the hot log; whether there are more. The caller commits."""
    txn = topic.keyspace.writing()
    topic.settle()
    cold = topic.cold
    state = cold.state
    end = entry_ids.pack(block.last)
    found = list(islice(chunks.forward(txn, topic.number, hot_from(topic)), SLICE_CHUNKS))
    is_more = len(found) == SLICE_CHUNKS and found[-1].last < end
    up_to = found[-1].last if is_more else end
    here: set[bytes] = set()
    live_bytes = 0
    for chunk in found:
        count = chunk.place_behind(end)
        if not count:
            break
        here.update(chunk.id(place) for place in range(count))
        live_bytes += len(chunk.slice(0, count))
        chunks.remove(txn, chunk, range(count))  # what came behind the block has been put into its last chunk since
    low = max(entry_ids.pack(state.sealed_to), entry_ids.pack(topic.trimmed_id))
    start, stop = bisect_right(contents.ids, low), bisect_right(contents.ids, up_to)
    if stop - start != len(here):
        for packed, size in zip(contents.ids[start:stop], contents.sizes[start:stop], strict=True):
            if packed not in here:
                cold_blocks.bury(txn, topic.number, packed, size)
    first = cold_blocks.first(txn, topic.number)
    is_first = first is not None and first.first == block.first
    cold.change(
        sealed_to=entry_ids.unpack(up_to),
        live=state.live + len(here),
        live_bytes=state.live_bytes + live_bytes,
        first_live=state.first_live + len(here) * is_first,
        first_bytes=state.first_bytes + live_bytes * is_first,
    )
    topic.sealed(entry_ids.unpack(up_to))
    return is_more
