"""Blocks that another member sends as they are, file by file, for a topic that is on its way in.

Laws:
 1. offer: the arriving topic has the block before its file is there: one commit. If the topic comes to nothing, its
    blocks are removed as those of any deleted topic, and their files with them.
 2. keep: a thread proves the file, makes it this store's, writes it, and notes it in a manifest.
 3. take: the topic has the blocks that were kept, and no others (arrivals.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.failpoint import failpoint

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.topics.entry_ids import Id

_NO_OFFER = b"ERR no block was offered: SHARD.BLOCK does that"
_TOO_MUCH = b"ERR that is more than the block was said to have"
_INCOMPLETE = b"ERR a block is missing: %b"


class BlockKeeper(Protocol):
    """What it asks of the cold store of a server."""

    def begin(self) -> bool:
        """Return whether there is one, so that blocks can be kept. Raises StoreError."""

    def path_of(self, name: bytes, number: int, first: Id, last: Id) -> str:
        """Return where a topic's block is to be."""

    def keep(self, name: bytes, number: int, said: BlockInfo, file: bytes, others: Collection[BlockInfo]) -> BlockInfo:
        """Prove a file that came, and make it this topic's block, beside the others that it has. In any thread. Raises
        StoreError."""


class ArrivingBlocks:
    """Those of one topic that are kept, and the one that is coming."""

    def __init__(self, name: bytes, number: int) -> None:
        self.name = name
        self.number = number
        self.kept: dict[Id, BlockInfo] = {}
        """By the first id."""
        self._offered: BlockInfo | None = None
        self._file = bytearray()

    def offer(self, txn: Txn, said: BlockInfo, due_ms: int) -> None:
        """Expect this block next; remove the one that stood in its place."""
        before = next(cold_blocks.forward(txn, self.number, said.first), None)
        if before is not None and before.first == said.first and before.path != said.path:
            cold_blocks.remove(txn, self.number, before, due_ms)
        cold_blocks.put(txn, self.number, said)
        self.kept.pop(said.first, None)
        self._offered, self._file = said, bytearray()
        failpoint("shard-block-offered")

    def put(self, piece: bytes) -> bool:
        """Take the next bytes of its file; return whether all are there. Raises CommandError."""
        if self._offered is None:
            raise CommandError(_NO_OFFER)
        self._file += piece
        if len(self._file) > self._offered.file_bytes:
            raise CommandError(_TOO_MUCH)
        return len(self._file) == self._offered.file_bytes

    def keeping(self, keeper: BlockKeeper) -> Callable[[], Kept]:
        """Return what keeps it, in a thread."""
        said, file, others = self._offered, bytes(self._file), list(self.kept.values())
        assert said is not None
        self._offered, self._file = None, bytearray()

        def keep() -> Kept:
            try:
                return Kept(self, keeper.keep(self.name, self.number, said, file, others), None)
            except StoreError as failure:
                return Kept(self, said, failure)

        return keep

    def leave_only(self, txn: Txn, firsts: Collection[Id], due_ms: int) -> None:
        """Remove all blocks but these."""
        for block in list(cold_blocks.forward(txn, self.number)):
            if block.first not in firsts:
                cold_blocks.remove(txn, self.number, block, due_ms)
                self.kept.pop(block.first, None)

    def take(self, txn: Txn) -> None:
        """Give the topic the blocks that were kept. Raises CommandError if one is missing."""
        for block in list(cold_blocks.forward(txn, self.number)):
            known = self.kept.get(block.first)
            if known is None:
                raise CommandError(_INCOMPLETE % block.path.encode())
            if known != block:
                cold_blocks.put(txn, self.number, known)


class Kept(NamedTuple):
    """What has become of a block."""

    blocks: ArrivingBlocks
    block: BlockInfo
    failure: StoreError | None


def at(block: BlockInfo, path: str) -> BlockInfo:
    """Return a block, as another member knows it, with its path here; its row groups are read from its file."""
    return replace(block, path=path, groups=())
