"""The bytes of a target: whoever changes them raises a format, and adds a golden file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlite_pubsub.backup import manifest
from rlite_pubsub.backup.layout import (
    ChangeName,
    SnapshotName,
    block_of,
    change_name,
    digest_in,
    piece_of,
    snapshot_name,
)
from rlite_pubsub.backup.manifest import Block, PieceOf, SnapshotManifest
from rlite_pubsub.backup.piece import Content, unpack
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.handle import PAGE_BYTES

GOLDEN = Path(__file__).parent / "golden"
CHAIN = "1763550000000-0a1b2c3d"
MANIFEST = SnapshotManifest(
    store="00112233445566778899aabbccddeeff",
    name=SnapshotName(CHAIN, 3, 7, 1763550001234),
    commit=4711,
    used_bytes=12 * PAGE_BYTES,
    meta=bytes(range(152)),
    store_format=3,
    program="0.2.0",
    pieces=(PieceOf("ab" * 32, 9), PieceOf("cd" * 32, 1)),
    cold="",
    blocks=(Block("t/1/1-0_9-0.parquet", "ef" * 32, 4096),),
)
HEAD_BYTES = 10 + 2 + 32 + 4
RUNS = [(2, b"a" * PAGE_BYTES), (7, b"b" * PAGE_BYTES * 2)]
HEAD = {"chain": CHAIN, "number": 7, "time_ms": 1763550001234, "before": 4700, "commit": 4711, "previous": "12" * 32,
        "meta": "00ff", "blocks": []}  # fmt: skip


def test_manifest_is_what_it_was(tmp_path: Path) -> None:
    golden = (GOLDEN / "manifest-1.json").read_bytes()
    assert manifest.text(MANIFEST) == golden
    target = open_place(str(tmp_path), tmp_path)
    target.write(MANIFEST.name.path, golden)
    assert manifest.read(target, MANIFEST.name) == MANIFEST


def test_home_is_what_it_was(tmp_path: Path) -> None:
    golden = (GOLDEN / "backup-1.json").read_bytes()
    assert manifest.home_text(MANIFEST.store) == golden
    target = open_place(str(tmp_path), tmp_path)
    target.write("backup.json", golden)
    assert manifest.home_store(target) == MANIFEST.store


@pytest.mark.parametrize(("name", "head"), [("piece-1.pages", None), ("change-1.pages", HEAD)])
def test_pieces_are_read_as_they_were_written(name: str, head: dict[str, object] | None) -> None:
    golden = (GOLDEN / name).read_bytes()
    found = unpack(name, golden)
    assert (found.head, found.runs) == (head or {}, RUNS)
    content = Content(RUNS, head)
    assert content.digest == found.digest
    assert content.packed()[:HEAD_BYTES] == golden[:HEAD_BYTES]  # what follows is zlib's, whose versions differ


def test_names_say_what_they_did() -> None:
    assert MANIFEST.name.path == f"snapshots/{CHAIN}/0000000003-0000000007-1763550001234.json"
    assert snapshot_name(MANIFEST.name.path) == MANIFEST.name
    change = ChangeName(CHAIN, 7, 1763550001234)
    assert change.path == f"changes/{CHAIN}/0000000007-1763550001234.pages"
    assert change_name(change.path) == change
    for path in (piece_of("ab" * 32), block_of("ab" * 32)):
        assert digest_in(path) == "ab" * 32
    for stranger in ("changes/x", "snapshots/x/y.json", "pieces/ab/x.pages", f"changes/{CHAIN}/7-1.pages", "notes.txt"):
        assert change_name(stranger) is snapshot_name(stranger) is digest_in(stranger) is None
