"""The folder `backup` of a store: who backs it up, and what that one says of itself.

    shipper.lock     flock, held by the one that follows the store continuously
    snapshot.lock    flock, held by who makes a snapshot or removes what nobody needs: what one finds in the target and
                     does not write again another must not remove
    state.json       what the one that follows says (storage/commons/backup_state.py)
    0….fifo          its doorbell: whoever rings wants the state of now to be brought away
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlite_pubsub.backup.errors import BackupError
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.commons import identity as identities
from rlite_pubsub.storage.commons.backup_state import folder_of
from rlite_pubsub.storage.errors import StoreUnwritable
from rlite_pubsub.storage.locks import lock_file
from rlite_pubsub.storage.store import Store

SNAPSHOT_PATIENCE_S = 3600.0
"""As long as somebody else's snapshot may take."""


def identity(store: Store) -> str:
    """Return the store's id, which it has from now on; and no page is held. Raises StoreError."""
    found = store.data.read(identities.get)
    if found is None:
        found = store.data.write(identities.settle)
        store.data.sync()
        store.data.safety.let_go()
    return found


def check_outside(place: Place, folder: Path) -> None:
    """Refuse a target in the store's own folder, with which it would be lost. Raises BackupError."""
    if isinstance(place, LocalPlace) and place.folder.resolve().is_relative_to(folder.resolve()):
        raise BackupError(str(place.folder), f"it is inside the store {folder}: a backup there is lost with it")


@contextmanager
def snapshotting(folder: Path) -> Iterator[None]:
    """Alone among those who make snapshots of this store. Raises StoreError; StoreHeld where another has been at it for
    very long."""
    path = _made(folder) / "snapshot.lock"
    descriptor = _opened(path)
    try:
        lock_file.take(descriptor, path, SNAPSHOT_PATIENCE_S)
        yield
    finally:
        os.close(descriptor)


class BackupLock:
    """One of these, that is tried and not waited for. Released when it is closed, or its process dies."""

    def __init__(self, folder: Path, name: str) -> None:
        """Raises StoreUnwritable."""
        self._descriptor = _opened(_made(folder) / name)

    def take(self) -> bool:
        """Take the lock; return whether it is ours."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._descriptor)


def _made(folder: Path) -> Path:
    made = folder_of(folder)
    try:
        made.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreUnwritable(made, os.strerror(error.errno or 0)) from error
    return made


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
