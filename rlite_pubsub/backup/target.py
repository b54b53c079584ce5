"""The contents of a target: which store it belongs to, which states it has, and what nobody needs any more."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from rlite_pubsub.backup import layout, manifest, rows
from rlite_pubsub.backup.errors import BackupError, ForeignTarget, NothingKept, PieceMissing
from rlite_pubsub.backup.layout import ChangeName, SnapshotName
from rlite_pubsub.backup.manifest import SnapshotManifest
from rlite_pubsub.backup.piece import MOST_PAGES, Piece, unpack
from rlite_pubsub.backup.rows import RowPiece
from rlite_pubsub.cold.place import Place

UNNEEDED_S = 3600.0
"""So old is a piece that nobody refers to before it goes, and so are the changes of a chain that has no snapshot: one
that is being made, or waits for another's to be made, may be about to."""


@dataclass
class Chain:
    """The files of one chain, by name."""

    name: str
    snapshots: list[SnapshotName] = field(default_factory=list)
    changes: list[ChangeName] = field(default_factory=list)

    def states(self) -> Iterator[tuple[int, int]]:
        """Return (time in ms, number) of all that names say can be restored, oldest first."""
        if not self.snapshots:
            return
        starts = {one.last: one.time_ms for one in self.snapshots}
        times = {change.number: change.time_ms for change in self.changes} | starts
        at = -1
        for number in sorted(times):
            if number in starts or number == at + 1:
                at = number
                yield times[number], number

    def lost(self) -> Iterator[tuple[int, str]]:
        """(time in ms, what is missing) of states that can't be: a change before them is not there."""
        reached = {number for _, number in self.states()}
        begun = min((one.last for one in self.snapshots), default=sys.maxsize)
        for change in self.changes:
            if change.number > begun and change.number not in reached:
                missing = max(number for number in reached if number < change.number) + 1
                yield change.time_ms, f"{layout.CHANGES}/{self.name}/{missing:010d}-*.pages"


class BackupTarget:
    """The backups in one place."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def settle(self, store: str) -> None:
        """Make it the target of this store. Raises ForeignTarget if it belongs to another; BackupError, PlaceFailed."""
        found = manifest.home_store(self.place)
        if found is None:
            self.place.write(layout.HOME, manifest.home_text(store))
        elif found != store:
            which = f"it has the backups of store {found}, and this is {store}"
            raise ForeignTarget(f"{self.place.shown}: {layout.HOME}", f"{which}: two stores cannot share a target")

    def check(self) -> None:
        """Check that it is one. Raises BackupError, PlaceFailed."""
        if manifest.home_store(self.place) is None:
            raise NothingKept(self.place.shown, "there is no backup here")

    # -- what is there

    def chains(self) -> list[Chain]:
        """Return all of them, oldest first. Raises PlaceFailed."""
        found: dict[str, Chain] = {}
        for each in self.place.files(layout.SNAPSHOTS):
            snapshot = layout.snapshot_name(each.path)
            if snapshot is not None:
                found.setdefault(snapshot.chain, Chain(snapshot.chain)).snapshots.append(snapshot)
        for each in self.place.files(layout.CHANGES):
            change = layout.change_name(each.path)
            if change is not None:
                found.setdefault(change.chain, Chain(change.chain)).changes.append(change)
        return [found[name] for name in sorted(found)]

    def digests(self, folder: str) -> set[str]:
        """Return the digests of the pieces, or of the blocks, that are there. Raises PlaceFailed."""
        return {digest for each in self.place.files(folder) if (digest := layout.digest_in(each.path)) is not None}

    def manifest(self, name: SnapshotName) -> SnapshotManifest:
        """Raises BackupError, PlaceFailed."""
        return manifest.read(self.place, name)

    def piece(self, path: str, digest: str = "", most_pages: int = 0) -> Piece | RowPiece:
        """Return a piece as it was written, of so many pages at the most (0: as many as any may have); with this
        digest, if one is given. Raises BackupError, PlaceFailed."""
        try:
            data = self.place.read(path)
        except FileNotFoundError as failure:
            raise PieceMissing(path) from failure
        found: Piece | RowPiece
        if data.startswith(rows.MAGIC):
            found = rows.unpack(path, data, most_pages or rows.MOST_PAGES)
        else:
            found = unpack(path, data, most_pages or MOST_PAGES)
        if digest and found.digest != digest:
            raise BackupError(path, "its name is that of another piece")
        return found


# -- what is kept


def unneeded(target: BackupTarget, keep_from_ms: int, now_s: Callable[[], float] = time.time) -> Iterator[str]:
    """The files that nobody needs who restores a state from this time on: to be deleted one after the other, as they
    are told. The last state that there is stays, however old. Raises BackupError, PlaceFailed."""
    chains = target.chains()
    kept = _kept(chains, keep_from_ms, int((now_s() - UNNEEDED_S) * 1000))
    needed: set[str] = set()
    for chain in chains:
        first = kept.get(chain.name)
        for snapshot in chain.snapshots:
            if first is None or snapshot.last < first.last:
                yield snapshot.path
            else:
                known = target.manifest(snapshot)
                needed.update(piece.sha256 for piece in known.pieces)
                needed.update(block.sha256 for block in known.blocks)
        for change in chain.changes:
            if chain.name not in kept or (first is not None and change.number <= first.first):
                yield change.path
    yield from _unneeded_by_digest(target, layout.PIECES, needed, now_s)
    if any(True for _ in _unneeded_by_digest(target, layout.BLOCKS, needed, now_s)):
        for chain in chains:
            for change in chain.changes if chain.name in kept else ():
                if change.number > max((one.last for one in chain.snapshots), default=0):
                    needed.update(str(block["sha256"]) for block in target.piece(change.path).head["blocks"])
        yield from _unneeded_by_digest(target, layout.BLOCKS, needed, now_s)


def _unneeded_by_digest(
    target: BackupTarget, folder: str, needed: set[str], now_s: Callable[[], float]
) -> Iterator[str]:
    for each in target.place.files(folder):
        digest = layout.digest_in(each.path)
        if digest is not None and digest not in needed:
            if each.modified_s is not None and each.modified_s < now_s() - UNNEEDED_S:
                yield each.path


def _kept(chains: list[Chain], keep_from_ms: int, under_way_from_ms: int) -> dict[str, SnapshotName | None]:
    """Return the first snapshot to keep of each chain that has anything to keep; None if it has none yet."""
    kept: dict[str, SnapshotName | None] = {}
    last = max(chains, key=_last_time, default=None)
    for place, chain in enumerate(chains):
        if not chain.snapshots:
            last_ms = max((change.time_ms for change in chain.changes), default=0)
            if place == len(chains) - 1 or last_ms >= under_way_from_ms:  # its snapshot may be under way
                kept[chain.name] = None
            continue
        before = [one for one in chain.snapshots if one.time_ms <= keep_from_ms]
        if _last_time(chain) >= keep_from_ms or chain is last:
            kept[chain.name] = max(before, key=lambda one: one.last) if before else min(chain.snapshots)
    return kept


def _last_time(chain: Chain) -> int:
    return max((time_ms for time_ms, _ in chain.states()), default=0)
