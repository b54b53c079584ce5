"""A snapshot's manifest, written when all else of it is there: without it there is no snapshot.

JSON with an indent of 1: format, store (its id), chain, first and last (of the chain's changes: see layout.py), commit,
time_ms, used_bytes (how long data.mdb is), meta (its meta page, hex), store_format, program (the version that has
written it), pieces (sha256 and pages of each), cold (where the store has its blocks: "" is the folder in it), blocks
(path, sha256 and bytes of each that is in the target, and that this state or one since the snapshot before needs), and
the sha256 of this JSON without it.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, NamedTuple

from rlite_pubsub.backup.errors import BackupError, FormatNewer, PieceDamaged, PieceMissing
from rlite_pubsub.backup.layout import HOME, SnapshotName
from rlite_pubsub.cold.place import Place

FORMAT = 1


class Block(NamedTuple):
    """A block of the local cold store."""

    path: str
    """In the cold store."""
    sha256: str
    bytes: int


class PieceOf(NamedTuple):
    """A piece of a snapshot."""

    sha256: str
    pages: int


class SnapshotManifest(NamedTuple):
    """All that is needed of a snapshot."""

    store: str
    name: SnapshotName
    commit: int
    used_bytes: int
    meta: bytes
    store_format: int
    program: str
    pieces: tuple[PieceOf, ...]
    cold: str
    blocks: tuple[Block, ...]


def text(manifest: SnapshotManifest) -> bytes:
    """Return its text in the file."""
    return _sealed(
        {
            "format": FORMAT,
            "store": manifest.store,
            **manifest.name._asdict(),
            "commit": manifest.commit,
            "used_bytes": manifest.used_bytes,
            "meta": manifest.meta.hex(),
            "store_format": manifest.store_format,
            "program": manifest.program,
            "pieces": [piece._asdict() for piece in manifest.pieces],
            "cold": manifest.cold,
            "blocks": [block._asdict() for block in manifest.blocks],
        }
    )


def read(place: Place, name: SnapshotName) -> SnapshotManifest:
    """Read a manifest. Raises BackupError, which names the file; PlaceFailed."""
    said = _read(place, name.path)
    try:
        found = SnapshotManifest(
            str(said["store"]),
            SnapshotName(str(said["chain"]), int(said["first"]), int(said["last"]), int(said["time_ms"])),
            int(said["commit"]),
            int(said["used_bytes"]),
            bytes.fromhex(said["meta"]),
            int(said["store_format"]),
            str(said["program"]),
            tuple(PieceOf(str(each["sha256"]), int(each["pages"])) for each in said["pieces"]),
            str(said["cold"]),
            tuple(Block(str(each["path"]), str(each["sha256"]), int(each["bytes"])) for each in said["blocks"]),
        )
    except (ValueError, KeyError, TypeError) as failure:
        raise PieceDamaged(name.path, f"it is not a manifest ({failure!r})") from failure
    if found.name != name:
        raise PieceDamaged(name.path, f"it is {found.name.path}")
    return found


def home_text(store: str) -> bytes:
    """Return the text that says which store a target belongs to."""
    return _sealed({"format": FORMAT, "store": store})


def home_store(place: Place) -> str | None:
    """Return the store that it belongs to; None: none yet. Raises BackupError, PlaceFailed."""
    try:
        said = _read(place, HOME)
    except PieceMissing:
        return None
    return str(said.get("store"))


def _sealed(said: dict[str, Any]) -> bytes:
    digest = sha256(json.dumps(said, indent=1).encode()).hexdigest()
    return json.dumps({**said, "sha256": digest}, indent=1).encode() + b"\n"


def _read(place: Place, path: str) -> dict[str, Any]:
    try:
        data = place.read(path)
    except FileNotFoundError as failure:
        raise PieceMissing(path) from failure
    try:
        said = json.loads(data)
        version = int(said["format"])
        if version > FORMAT:
            raise FormatNewer(path, version, FORMAT)
        is_whole = _sealed({word: value for word, value in said.items() if word != "sha256"}) == data
    except BackupError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        raise PieceDamaged(path, f"it cannot be read ({failure!r})") from failure
    if not is_whole:
        raise PieceDamaged(path, "it is not what was written: its digest differs")
    return dict(said)
