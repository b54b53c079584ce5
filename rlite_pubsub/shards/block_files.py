"""Whole blocks on their way between members: what a sender reads, and what a receiver keeps.

A block's file is sent as it is, in pieces. Both sides prove it by the digest that the sender's store has of it; then
it becomes one of the receiver's own (cold/adopting.py). Nothing is decoded or sealed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from rlite_pubsub.cold import paths
from rlite_pubsub.cold.errors import BlockDamaged, BlockMissing
from rlite_pubsub.cold.origin import Origin
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.cold import cold_home
from rlite_pubsub.storage.failpoint import failpoint

if TYPE_CHECKING:
    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
    from rlite_pubsub.storage.store import Store
    from rlite_pubsub.storage.topics.entry_ids import Id

_PIECE_BYTES: Final = 1 << 20


def pieces(place: Place, block: BlockInfo) -> Iterator[bytes]:
    """Yield a block's file; the last piece only once the whole is proved, so that nobody has a damaged one. Raises
    BlockMissing, BlockDamaged, PlaceFailed."""
    digest = sha256()
    for at in range(0, block.file_bytes, _PIECE_BYTES):
        try:
            piece = place.read(block.path, at, min(_PIECE_BYTES, block.file_bytes - at))
        except FileNotFoundError as failure:
            raise BlockMissing(block.path, "this block is not there") from failure
        digest.update(piece)
        if at + _PIECE_BYTES >= block.file_bytes and digest.digest() != block.sha256:
            raise BlockDamaged(block.path, "this block is not what was sealed")
        yield piece


class KeptBlocks:
    """Where a server's own cold store keeps what comes (engine/shards/block_arrivals.py, BlockKeeper)."""

    def __init__(self, store: Store, url: Callable[[], str | None]) -> None:
        """`url`: where the cold store is (cold/places.py), with its secrets; None: there is none."""
        self._store = store
        self._url = url

    def begin(self) -> bool:
        url = self._url()
        if url is None:
            return False
        shown = open_place(url, self._store.folder).shown if "://" in url else url
        self._store.data.write(lambda txn: cold_home.settle(txn, shown))
        return True

    def path_of(self, name: bytes, number: int, first: Id, last: Id) -> str:
        return paths.block_of(name, number, first, last)

    def keep(self, name: bytes, number: int, said: BlockInfo, file: bytes, others: Collection[BlockInfo]) -> BlockInfo:
        from rlite_pubsub.cold import manifest
        from rlite_pubsub.cold.adopting import adopted

        url, home = self._url(), self._store.data.read(cold_home.get)
        assert url is not None and home is not None
        place, origin = open_place(url, self._store.folder), Origin(home.store, name, number)
        made, block = adopted(file, said, origin)
        place.write(block.path, made)
        failpoint("shard-block-written")
        manifest.write(place, manifest.of(origin, [*others, block]))
        failpoint("shard-block-mirrored")
        return block
