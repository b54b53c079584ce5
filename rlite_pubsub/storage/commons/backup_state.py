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
