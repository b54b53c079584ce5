"""The blocks of a store's cold part that are on this machine: a commit needs them, and they are in no page.

A block is never changed, so it is brought to a target once, under its digest. Blocks in a bucket stay where they are.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from pathlib import Path

from rlite_pubsub.backup.errors import BlockLost, PieceDamaged, PieceMissing
from rlite_pubsub.backup.layout import block_of
from rlite_pubsub.backup.manifest import Block
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.cold.reader import is_installed
from rlite_pubsub.storage.cold import cold_blocks, cold_home
from rlite_pubsub.storage.commons import shard_rows
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys.proof import owners
from rlite_pubsub.storage.store import Store


def needed(txn: Txn) -> tuple[str, tuple[Block, ...]]:
    """Return where a store has its blocks, and those of them that are on this machine."""
    home = cold_home.get(txn)
    if home is None:
        return "", ()
    if not is_local(home.url):
        return home.url, ()
    arriving = set(shard_rows.arriving(txn))  # whose files may not be there yet, and nobody reads them
    found = {Block(path, digest.hex(), size) for path, digest, size in cold_blocks.files(txn, arriving)}
    return home.url, tuple(sorted(found))


def is_local(url: str) -> bool:
    """Return whether a cold store is a folder of this machine."""
    return "://" not in url or url.startswith("file://")


class Local:
    """A store's, by the way they go to a target."""

    def __init__(self, folder: Path, target: Place, known: Collection[str]) -> None:
        """`known`: the digests of those that are there."""
        self._folder = folder
        self._target = target
        self._known = set(known)

    def bring(self, url: str, block: Block) -> int:
        """Bring a block to the target, if it is not there; return how many bytes that were. Raises BlockLost,
        PlaceFailed."""
        if block.sha256 in self._known:
            return 0
        place = open_place(url, self._folder)
        try:
            data = place.read(block.path)
        except FileNotFoundError as failure:
            raise BlockLost(block.path, "this block of the cold store is not there") from failure
        if sha256(data).hexdigest() != block.sha256:
            raise BlockLost(block.path, "this block of the cold store is not what was written")
        self._target.write(block_of(block.sha256), data)
        self._known.add(block.sha256)
        return len(data)

    def forget(self, digest: str) -> None:
        """Note that a block was removed from the target."""
        self._known.discard(digest)


def put_back(target: Place, folder: Path, block: Block) -> None:
    """Put a block back into the store's own cold folder. Raises BackupError, PlaceFailed."""
    path = block_of(block.sha256)
    data = read(target, path, block.sha256)
    place = open_place("", folder)
    assert isinstance(place, LocalPlace)
    place.write(block.path, data)


def mirror(store: Store) -> None:
    """Write the manifests of the store's own cold folder, which are not in a backup: its records have all that they
    have. Where Arrow is missing the sealer does it. Raises StoreError."""
    home = store.data.read(cold_home.get)
    if home is None or home.url or not is_installed():
        return
    from rlite_pubsub.cold import manifest
    from rlite_pubsub.cold.origin import Origin

    place = open_place("", store.folder)
    for number, owner in store.data.read(lambda txn: list(owners(txn))):
        found = store.data.read(lambda txn: list(cold_blocks.forward(txn, number)))  # noqa: B023
        if found:
            manifest.write(place, manifest.of(Origin(home.store, owner.record.name, number), found))


def read(target: Place, path: str, digest: str) -> bytes:
    """Return a block that is in a target. Raises BackupError, PlaceFailed."""
    try:
        data = target.read(path)
    except FileNotFoundError as failure:
        raise PieceMissing(path) from failure
    if sha256(data).hexdigest() != digest:
        raise PieceDamaged(path, "it is not what was written: its digest differs")
    return data
