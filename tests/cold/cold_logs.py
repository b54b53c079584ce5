"""Entries for tests of the cold store, and blocks of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from rlite_pubsub.cold import block, columns, paths
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.place import Place
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import Id

Log: TypeAlias = Sequence[tuple[Id, list[bytes]]]
"""(id, names and values) of each entry."""

STORE = "0123456789abcdef"
NEWS = Origin(STORE, b"news", 7)
SEALED_MS = 1_700_000_009_000


def chunk_of(log: Log) -> Chunk:
    """All of these entries in one chunk."""
    return Chunk(b"", chunks.pack([entry_ids.pack(each) for each, _ in log], [encode_entry(*each) for each in log]))


def pages_of(log: Log) -> list[bytes]:
    """The chunks' values that they have in the store."""
    wires = [encode_entry(*each) for each in log]
    packed = [entry_ids.pack(each) for each, _ in log]
    return [chunks.pack(packed[start:stop], wires[start:stop]) for start, stop in chunks.cut(list(map(len, wires)))]


def log_of(count: int, first_ms: int = 1_700_000_000_000) -> Log:
    """Entries as they come: some in one millisecond, of several shapes."""
    return [
        (
            (first_ms + number // 3, number % 3),
            [b"value", b"%d " % number * (number % 5)] + [b"kind", b"\xff\0", b"kind", b""] * (number % 2),
        )
        for number in range(count)
    ]


def seal(place: Place, log: Log, origin: Origin = NEWS, sealed_ms: int = SEALED_MS) -> BlockInfo:
    """These entries as a block."""
    path = paths.block_of(origin.topic, origin.number, log[0][0], log[-1][0])
    batches = columns.to_batches(pages_of(log), origin.topic)
    return block.write(place, path, origin, batches, sealed_ms)


def read_all(place: Place, info: BlockInfo) -> bytes:
    """All entries of a block, as they are sent."""
    return b"".join(block.read_group(place, info, number).blob for number in range(len(info.groups)))
