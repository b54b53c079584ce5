"""One backup of a store that others may be writing to, from the beginning to the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from rlite_pubsub.backup import room, target
from rlite_pubsub.backup.errors import TrailLost
from rlite_pubsub.backup.layout import SnapshotName
from rlite_pubsub.backup.row_trail import RowTrail, begin_trail
from rlite_pubsub.backup.shipment import Shipment
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.trail import Trail
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.store import Store

ROLL_SECONDS = 0.5
"""So old the pin of who copies may become."""
_ATTEMPTS = 5


class SnapshotMade(NamedTuple):
    """A snapshot that was made, and what was new in it."""

    name: SnapshotName
    pieces: int
    blocks: int
    new_bytes: int
    """That were not in the target."""
    lost: str
    """What is the matter with the store's own cold blocks; "" if nothing is."""


def backup(store: Store, place: Place, clock_ms: Callable[[], int]) -> SnapshotMade:
    """All that was committed when it began, and perhaps more: the state of one commit. Raises StoreError: BackupError
    and PlaceFailed among them."""
    identity = room.identity(store)
    with room.snapshotting(store.folder):
        shipment = Shipment(BackupTarget(place), store.folder, identity)
        for attempt in range(_ATTEMPTS):
            try:
                return _attempted(store, shipment, clock_ms)
            except TrailLost:
                if attempt == _ATTEMPTS - 1:
                    raise
    raise AssertionError


def collect(store: Store, place: Place, keep_from_ms: int) -> int:
    """Remove what nobody needs who restores a state from then on; how many files. Raises BackupError, PlaceFailed."""
    with room.snapshotting(store.folder):
        shipment = Shipment(BackupTarget(place), store.folder, room.identity(store))
        gone = list(target.unneeded(shipment.target, keep_from_ms))
        for path in gone:
            shipment.delete(path)
        return len(gone)


def _attempted(store: Store, shipment: Shipment, clock_ms: Callable[[], int]) -> SnapshotMade:
    trail = begin_trail(store, clock_ms)
    try:
        shipment.bring_blocks(trail.standing, trail.standing.blocks)
        pieces = []
        rolled = time.monotonic()
        for content in trail.contents():
            pieces.append(shipment.put_piece(content))
            if time.monotonic() - rolled >= ROLL_SECONDS:
                _roll(trail, shipment)
                rolled = time.monotonic()
        _roll(trail, shipment)
        name = shipment.put_manifest(trail.chain, 0, trail.standing, pieces, set())
        return SnapshotMade(name, len(pieces), len(trail.standing.blocks), shipment.bytes, shipment.lost)
    finally:
        trail.end()


def _roll(trail: Trail | RowTrail, shipment: Shipment) -> None:
    trail.roll()
    change = trail.cut()
    if change is not None:
        shipment.put_change(change)
