"""The order in which files go to a target: a file is there before anything that needs it, and a manifest last.

    blocks that a change needs -> the change
    pieces of a snapshot, changes up to its last -> its manifest

So whatever is killed at whatever step, all states that are told of can be restored. What was put there without success
is collected later (target.py).
"""

from __future__ import annotations

import logging
from pathlib import Path

from rlite_pubsub.backup import blocks, layout, manifest
from rlite_pubsub.backup.errors import BlockLost
from rlite_pubsub.backup.layout import SnapshotName
from rlite_pubsub.backup.manifest import Block, PieceOf, SnapshotManifest
from rlite_pubsub.backup.piece import Content
from rlite_pubsub.backup.rows import RowContent
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.trail import Change, Standing
from rlite_pubsub.storage import format
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.version import __version__

log = logging.getLogger("rlite_pubsub")


class Shipment:
    """Brings one store's data to one target, by one thread. Its methods raise BackupError and PlaceFailed."""

    def __init__(self, target: BackupTarget, folder: Path, store: str) -> None:
        """`folder`: the store's; `store`: its id."""
        target.settle(store)
        self.target = target
        self._store = store
        self._folder = folder
        self.bytes = 0
        """Written to the target."""
        self.lost = ""
        """What is the matter with the store's own blocks."""
        self.look()

    def look(self) -> None:
        """Note what is there, so that it is not sent again. Called by whoever makes a snapshot, once it is sure that
        nobody removes anything."""
        self._pieces = self.target.digests(layout.PIECES)
        self._blocks = blocks.Local(self._folder, self.target.place, self.target.digests(layout.BLOCKS))

    def bring_blocks(self, standing: Standing, wanted: tuple[Block, ...]) -> None:
        """Bring the blocks that a state needs. A damaged or missing one does not stop the rest: it is reported
        (`lost`)."""
        for block in wanted:
            try:
                self.bytes += self._blocks.bring(standing.cold, block)
            except BlockLost as lost:
                log.warning("Can't back up %s", lost)
                self.lost = f"a cold block is in no backup: {lost}"
            failpoint("backup-block-written")

    def put_change(self, change: Change) -> None:
        self.bring_blocks(change.standing, change.new_blocks)
        self.target.place.write(change.name.path, change.packed)
        self.bytes += len(change.packed)
        failpoint("backup-change-written")

    def put_piece(self, content: Content | RowContent) -> PieceOf:
        """Unless it is there."""
        if content.digest not in self._pieces:
            packed = content.packed()
            self.target.place.write(layout.piece_of(content.digest), packed)
            self._pieces.add(content.digest)
            self.bytes += len(packed)
            failpoint("backup-piece-written")
        return PieceOf(content.digest, content.pages)

    def put_manifest(
        self, chain: str, first: int, standing: Standing, pieces: list[PieceOf], since: set[Block]
    ) -> SnapshotName:
        """The snapshot is there from now on. `since`: blocks that a state since the snapshot before needs."""
        name = SnapshotName(chain, first, standing.number, standing.time_ms)
        made = SnapshotManifest(
            self._store,
            name,
            standing.commit,
            standing.used_bytes,
            standing.meta,
            format.VERSION,
            __version__,
            tuple(pieces),
            standing.cold,
            tuple(sorted(since.union(standing.blocks))),
        )
        packed = manifest.text(made)
        self.target.place.write(name.path, packed)
        self.bytes += len(packed)
        failpoint("backup-manifest-written")
        return name

    def delete(self, path: str) -> None:
        """Delete a file that nobody needs."""
        digest = layout.digest_in(path)
        if digest is not None:
            self._pieces.discard(digest)
            self._blocks.forget(digest)
        self.target.place.delete(path)
        failpoint("backup-file-deleted")
