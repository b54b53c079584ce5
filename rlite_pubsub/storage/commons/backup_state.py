"""What the process that backs a store up continuously says of itself, for all who have the store.

    backup/state.json    in the store's folder; replaced as a whole whenever something has changed
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

_NAME = "state.json"
BELL = 0
"""The number of the doorbell in that folder: ringing it asks for a backup of the current state."""


@dataclass
class BackupState:
    """As of the last time that something changed."""

    pid: int = 0
    target: str = ""
    """Without secrets."""
    interval_s: float = 0
    retain_s: int = 0
    commit: int = -1
    """The last commit that can be restored from the target; -1: none can."""
    as_of_ms: int = 0
    """Whatever was committed before can be restored."""
    piece: str = ""
    """The last that was written."""
    piece_ms: int = 0
    pieces: int = 0
    """Written by this process, and their bytes."""
    bytes: int = 0
    snapshots: int = 0
    snapshot_ms: int = 0
    """When the last one was made."""
    is_snapshotting: bool = False
    waiting_bytes: int = 0
    """Of pieces that the target has not taken yet."""
    failures: int = 0
    error: str = ""
    """Of the last attempt; "" where that went well."""
    error_ms: int = 0

    def note_piece(self, path: str, now_ms: int) -> None:
        """A change is in the target."""
        self.piece, self.piece_ms = path, now_ms
        self.pieces += 1

    def note_taken(self, lost: str) -> None:
        """The target took what it was given. `lost` says what is missing from the store itself; "" if nothing is."""
        self.error = lost

    def note_reached(self, as_of_ms: int, commit: int | None) -> None:
        """All that was committed before `as_of_ms` can be restored; `commit` is the last one, None: as before."""
        self.as_of_ms = as_of_ms
        if commit is not None:
            self.commit = commit

    def note_snapshot(self, path: str, commit: int, now_ms: int) -> None:
        """A snapshot is whole."""
        self.commit, self.piece = commit, path
        self.piece_ms = self.snapshot_ms = now_ms
        self.snapshots += 1
        self.is_snapshotting = False

    def note_snapshotting(self, is_snapshotting: bool) -> None:
        """A snapshot is begun, or given up."""
        self.is_snapshotting = is_snapshotting

    def note_failure(self, error: str, now_ms: int) -> None:
        """An attempt failed."""
        self.failures += 1
        self.error, self.error_ms = error, now_ms

    def note_waiting(self, waiting_bytes: int) -> None:
        """So much has not been taken yet."""
        self.waiting_bytes = waiting_bytes


def folder_of(store: Path) -> Path:
    """Where all of this is."""
    return store / "backup"


def write(store: Path, state: BackupState) -> None:
    """Raises OSError."""
    path = folder_of(store) / _NAME
    temporary = path.with_name(f".{_NAME}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w") as file:
        json.dump(asdict(state), file)
    temporary.rename(path)


def read(store: Path) -> BackupState | None:
    """None: nobody has ever backed it up continuously, or what is there cannot be read."""
    try:
        said = json.loads((folder_of(store) / _NAME).read_text())
        return BackupState(**{each.name: said[each.name] for each in fields(BackupState)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
