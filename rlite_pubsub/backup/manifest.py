"""A snapshot's manifest, written when all else of it is there: without it there is no snapshot.

JSON with an indent of 1: format, store (its id), chain, first and last (of the chain's changes: see layout.py), commit,
time_ms, used_bytes (how long data.mdb is), meta (its meta page, hex; none if the pieces have rows), store_format,
program (the version that has written it), pieces (sha256 and pages of each), cold (where the store has its blocks: ""
is the folder in it), blocks (path, sha256 and bytes of each that is in the target, and that this state or one since the
snapshot before needs), and the sha256 of this JSON without it.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, NamedTuple

from rlite_pubsub.backup.errors import BackupError, FormatNewer, PieceDamaged, PieceMissing
from rlite_pubsub.backup.layout import HOME, SnapshotName
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.handle import PAGE_BYTES
from rlite_pubsub.storage.pages import meta

FORMAT = 2
"""Of a snapshot of rows; one of pages has 1, as the home of a target."""
_FORMAT_OF_PAGES = 1
MOST_BYTES = 1 << 47
"""What an address space has: no data.mdb is longer."""


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
            "format": _FORMAT_OF_PAGES if manifest.meta else FORMAT,
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
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as failure:
        raise PieceDamaged(name.path, f"it is not a manifest ({failure})") from failure
    if found.name != name:
        raise PieceDamaged(name.path, f"it is {found.name.path}")
    return found


def checked_meta(page: bytes, commit: int) -> bytes:
    """Return a meta page, if it is one of this commit. Raises ValueError."""
    if meta.transaction_of(page) < 0:
        raise ValueError("its meta page is none")
    found = meta.unpacked(page)
    if found.transaction != commit or found.page_bytes != PAGE_BYTES or not 0 < found.used_bytes <= MOST_BYTES:
        raise ValueError("its meta page is not that of its commit")
    return page


def check_state(manifest: SnapshotManifest) -> None:
    """Check that what is said of the file can be a file. Raises PieceDamaged."""
    try:
        if any(not 0 < piece.pages <= MOST_BYTES // PAGE_BYTES for piece in manifest.pieces):
            raise ValueError("a piece has no pages, or too many")
        if not manifest.meta and manifest.commit >= 0:
            return
        checked_meta(manifest.meta, manifest.commit)
        if manifest.used_bytes != meta.unpacked(manifest.meta).used_bytes:
            raise ValueError(f"its file has {manifest.used_bytes} bytes, and another size by its meta page")
    except ValueError as failure:
        raise PieceDamaged(manifest.name.path, f"it describes no state ({failure})") from failure


def home_text(store: str) -> bytes:
    """Return the text that says which store a target belongs to."""
    return _sealed({"format": _FORMAT_OF_PAGES, "store": store})


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
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as failure:
        raise PieceDamaged(path, f"it cannot be read ({failure})") from failure
    if not is_whole:
        raise PieceDamaged(path, "it is not what was written: its digest differs")
    return dict(said)
