"""Entries of a topic's cold blocks as rows of a hot log: so they go to another member, whose own cold store seals them
again. A block is never changed, so it is read once, as long as nothing else in it is deleted or trimmed.

Each row group is proved by its digest when it is read (cold/block.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.databases import ENTRIES
from rlite_pubsub.storage.topics import chunks, entry_ids

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.topics.chunks import Chunk


class FrozenBlock(NamedTuple):
    """The contents read from a block."""

    block: BlockInfo
    above: bytes
    """Entries behind this id (packed) are not trimmed."""
    up_to: bytes
    """Entries behind this one are in the hot log."""
    buried: frozenset[bytes]
    """Deleted."""

    @property
    def name(self) -> tuple[str, bytes, bytes, frozenset[bytes]]:
        """The same for the same entries."""
        return self.block.path, self.above, self.up_to, self.buried


def blocks_of(txn: Txn, topic: Topic) -> list[FrozenBlock]:
    """Those of a topic as this transaction sees it."""
    sealed_to = topic.cold.state.sealed_to
    trimmed = topic.trimmed_id_stored
    found = []
    for block in cold_blocks.forward(txn, topic.number):
        if block.first <= sealed_to and block.last > trimmed:
            up_to = min(block.last, sealed_to)
            buried = frozenset(packed for packed, _ in cold_blocks.buried(txn, topic.number, block.first, up_to))
            above = entry_ids.pack(trimmed) if trimmed >= block.first else b""
            found.append(FrozenBlock(block, above, entry_ids.pack(up_to), buried))
    return found


def rows_of(frozen: FrozenBlock, read: Callable[[BlockInfo, int], Chunk]) -> Iterator[list[tuple[bytes, bytes]]]:
    """Its entries, a row group at a time, as rows of the hot log (storage/topics/whole_topic.py). Raises ColdError."""
    for number in range(len(frozen.block.groups)):
        chunk = read(frozen.block, number)
        there = [
            (packed, entry)
            for packed, entry in zip(map(chunk.id, range(chunk.count)), chunk.entries(), strict=True)
            if frozen.above < packed <= frozen.up_to and packed not in frozen.buried
        ]
        ids, entries = [packed for packed, _ in there], [entry for _, entry in there]
        yield [
            (ENTRIES + ids[start], chunks.pack(ids[start:stop], entries[start:stop]))
            for start, stop in chunks.cut([len(entry) for entry in entries])
        ]
