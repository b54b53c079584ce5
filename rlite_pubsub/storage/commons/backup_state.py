"""The report of the process that backs a store up continuously, for all who have the store open.

    backup/state.json    in the store's folder; replaced as a whole whenever something has changed
"""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass, fields
from pathlib import Path

_NAME = "state.json"
BELL = 0
"""The number of the doorbell in that folder: ringing it asks for a backup of the current state."""


@dataclass
class BackupState:
    """The state of the backup at its last change."""

    pid: int = 0
    target: str = ""
    """Without secrets."""
    interval_s: float = 0
    retain_s: int = 0
    commit: int = -1
    """The last commit that can be restored from the target; -1: none can."""
    as_of_ms: int = 0
    """Everything committed before this can be restored."""
    piece: str = ""
    """The last one written."""
    piece_ms: int = 0
    pieces: int = 0
    """How many this process has written, and their bytes."""
    bytes: int = 0
    snapshots: int = 0
    snapshot_ms: int = 0
    """When the last one was made."""
    is_snapshotting: bool = False
    waiting_bytes: int = 0
    """The bytes that the target has not taken yet."""
    failures: int = 0
    error: str = ""
    """The error of the last attempt; "" if it succeeded."""
    error_ms: int = 0

    def note_piece(self, path: str, now_ms: int) -> None:
        """Note that a change is in the target."""
        self.piece, self.piece_ms = path, now_ms
        self.pieces += 1

    def note_taken(self, lost: str) -> None:
        """Note that the target took what it was given. `lost` says what is missing from the store itself; "" if nothing
        is."""
        self.error = lost

    def note_reached(self, as_of_ms: int, commit: int | None) -> None:
        """Note that everything committed before `as_of_ms` can be restored; `commit` is the last one, None: as
        before."""
        self.as_of_ms = as_of_ms
        if commit is not None:
            self.commit = commit

    def note_snapshot(self, path: str, commit: int, now_ms: int) -> None:
        """Note that a snapshot is complete."""
        self.commit, self.piece = commit, path
        self.piece_ms = self.snapshot_ms = now_ms
        self.snapshots += 1
        self.is_snapshotting = False

    def note_snapshotting(self, is_snapshotting: bool) -> None:
        """Note that a snapshot was begun, or given up."""
        self.is_snapshotting = is_snapshotting

    def note_failure(self, error: str, now_ms: int) -> None:
        """Note that an attempt failed."""
        self.failures += 1
        self.error, self.error_ms = error, now_ms

    def note_waiting(self, waiting_bytes: int) -> None:
        """Note how many bytes the target has not taken yet."""
        self.waiting_bytes = waiting_bytes


def folder_of(store: Path) -> Path:
    """Return the folder of these files."""
    return store / "backup"


def write(store: Path, state: BackupState) -> None:
    """Write the state. Raises OSError."""
    path = folder_of(store) / _NAME
    temporary = path.with_name(f".{_NAME}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w") as file:
        json.dump(asdict(state), file)
    temporary.rename(path)


def read(store: Path) -> BackupState | None:
    """Read the state; None if the store was never backed up continuously, or the file cannot be read."""
    try:
        said = json.loads((folder_of(store) / _NAME).read_text())
        return BackupState(**{each.name: said[each.name] for each in fields(BackupState)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
