"""The errors of a backup. Each names the file."""

from __future__ import annotations

from rlite_pubsub.storage.errors import StoreError


class BackupError(StoreError):
    """Something is wrong with a backup, or cannot be done with it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class PieceMissing(BackupError):
    """A file that is needed is not there."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "it is missing: what needs it can't be restored")


class PieceDamaged(BackupError):
    """A file is not what was written: cut off, or with other bytes."""


class FormatNewer(BackupError):
    """A later version has written it."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            path, f"it has format {found}, and this version of rlite-pubsub reads format {known}: use a later version"
        )


class ForeignTarget(BackupError):
    """The target has the backups of another store."""


class NothingKept(BackupError):
    """The target has no state that was asked for."""


class StoreThere(BackupError):
    """A store would be restored over something that is there."""


class BlockLost(BackupError):
    """A block of the local cold store is not what it was: its topic can't be restored with it."""


class TrailLost(Exception):
    """The changes since the last piece cannot be known any more: a new snapshot is needed."""
