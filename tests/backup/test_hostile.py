"""A backup that is anybody's: whatever its files say, one sentence says what is wrong, and `verify` says so, too."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import rlite_pubsub
from rlite_pubsub.backup import layout, once
from rlite_pubsub.backup.errors import BackupError
from rlite_pubsub.backup.manifest import _sealed
from rlite_pubsub.backup.restoring import restore
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.verifying import verify
from rlite_pubsub.cli.command_line import main
from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.cold.local_place import LocalPlace
from rlite_pubsub.storage.store import Store

PAGE = 4096


@pytest.fixture
def target(tmp_path: Path) -> BackupTarget:
    with rlite_pubsub.Redis(tmp_path / "store") as client:
        client.mset({f"k{number}": "v" * 50 for number in range(500)})
    place = LocalPlace(tmp_path / "backup")
    with Store.open(tmp_path / "store") as store:
        once.backup(store, place, lambda: 1_800_000_000_000)
    return BackupTarget(place)


def _manifest(target: BackupTarget) -> Path:
    assert isinstance(target.place, LocalPlace)
    return next((target.place.folder / layout.SNAPSHOTS).glob("*/*.json"))


def _changed(change: Callable[[dict[str, Any]], object]) -> Callable[[BackupTarget], None]:
    """The manifest says something else, and is sealed."""

    def do(target: BackupTarget) -> None:
        said = json.loads(_manifest(target).read_bytes())
        del said["sha256"]
        change(said)
        _manifest(target).write_bytes(_sealed(said))

    return do


def _piece(runs: list[tuple[int, int]], body: Iterator[bytes], pages: int = 256) -> Callable[[BackupTarget], None]:
    """The snapshot has one piece, which says this."""

    def do(target: BackupTarget) -> None:
        packer, digest = zlib.compressobj(9), sha256()
        packed = []
        head = struct.pack(">I", len(runs)) + b"".join([struct.pack(">QI", *run) for run in runs])
        for part in (head, *body):
            digest.update(part)
            packed.append(packer.compress(part))
        data = b"".join([*packed, packer.flush()])
        place = target.place
        file = struct.pack(">10sH32sII", b"rlitepages", 1, digest.digest(), 0, zlib.crc32(data)) + data
        place.write(layout.piece_of(digest.hexdigest()), file)
        _changed(lambda said: said.update(pieces=[{"sha256": digest.hexdigest(), "pages": pages}]))(target)

    return do


HOSTILE: dict[str, Callable[[BackupTarget], object]] = {
    "unpacks to 2 GB": _piece([(10, 512 << 10)], iter([bytes(1 << 20)] * 2048)),
    "a page at 2^53": _piece([(1 << 53, 1)], iter([bytes(PAGE)])),
    "a page at 2^40": _piece([(1 << 40, 1)], iter([bytes(PAGE)])),
    "more runs than there are": _piece([], iter([b"\xff" * 100])),
    "a length of 2^62": _changed(lambda said: said.update(used_bytes=1 << 62)),
    "an infinite number": _changed(lambda said: said.update(commit=float("inf"))),
    "another commit": _changed(lambda said: said.update(commit=7)),
    "a meta page of nothing": _changed(lambda said: said.update(meta="ff" * 400)),
    "pieces without pages": _changed(lambda said: said["pieces"][0].update(pages=-5)),
    "brackets": lambda target: _manifest(target).write_text('{"format":1,"a":' + "[" * 200_000),
    "bytes": lambda target: _manifest(target).write_bytes(b'{"format":1,"a":"\xff\xfe'),
}


def _wrong(target: BackupTarget) -> list[str]:
    return [each.fault for each in verify(target) if each.fault]


@pytest.mark.parametrize("make", HOSTILE.values(), ids=list(HOSTILE))
def test_what_cannot_be_restored_is_said_by_verify_and_leaves_nothing(
    target: BackupTarget, make: Callable[[BackupTarget], object], tmp_path: Path
) -> None:
    make(target)
    with pytest.raises(BackupError):
        restore(target, tmp_path / "restored")
    assert not (tmp_path / "restored").exists() and not list(tmp_path.glob(".restored*"))
    assert len(_wrong(target)) == 1


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"format": 1e999, "store": "x"}', b"\xff\xfe"])
def test_a_home_that_is_none_is_said(target: BackupTarget, text: bytes) -> None:
    target.place.write(layout.HOME, text)
    with pytest.raises(BackupError, match="cannot be read"):
        target.check()


def test_pages_that_lmdb_cannot_read_are_not_restored(target: BackupTarget, tmp_path: Path) -> None:
    said = json.loads(_manifest(target).read_bytes())
    _piece([(2, 20)], iter([b"\xa5" * PAGE * 20]))(target)
    with pytest.raises(Exception, match="is damaged"):
        restore(target, tmp_path / "restored")
    assert said and not (tmp_path / "restored").exists()


@pytest.mark.parametrize("what", ["fifo", "device", "folder"])
def test_what_is_no_file_is_not_opened(target: BackupTarget, what: str) -> None:
    for file in (_manifest(target), next((target.place.folder / layout.PIECES).glob("*/*"))):  # type: ignore[attr-defined]
        file.unlink()
        if what == "fifo":
            os.mkfifo(file)
        elif what == "folder":
            file.mkdir()
        else:
            file.symlink_to("/dev/zero")
        with pytest.raises(ColdError, match="regular file"):
            target.place.read(str(file.relative_to(target.place.folder)))  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", ["verify", "backups", "restore"])
def test_a_store_or_a_file_in_place_of_a_backup_is_named_as_what_it_is(
    tmp_path: Path, target: BackupTarget, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = [str(tmp_path / "new")] if word == "restore" else []
    assert main([word, str(tmp_path / "store"), *more]) == 1
    assert "is a store, and no backup" in capsys.readouterr().err
    assert main([word, "/etc/hosts", *more]) == 1
    assert "/etc/hosts is a file" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main([word, str(tmp_path / "empty"), *more]) == 1
    assert "there is no backup here" in capsys.readouterr().err
