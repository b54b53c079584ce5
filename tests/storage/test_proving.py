"""The proof that LMDB can read a file, while others write to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import lmdb
import pytest

from rlite_pubsub.storage import proving

GROW = """
import lmdb, sys
file = lmdb.open(sys.argv[1], subdir=False, map_size=64 << 20)
with file.begin(write=True) as txn:
    for number in range(400):
        txn.put(b"%d" % number, bytes(100_000))
"""


def grow(path: Path) -> None:
    subprocess.run([sys.executable, "-c", GROW, path], check=True)


def test_a_file_that_grows_while_it_is_proved_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "data.mdb"
    with lmdb.open(str(path), subdir=False) as empty, empty.begin(write=True) as txn:
        txn.put(b"a", b"1")
    opened = lmdb.open(str(path), subdir=False, readonly=True, max_readers=1)
    grow(path)  # beyond what it was mapped for
    with proving.begun(opened) as txn:
        assert txn.stat()["entries"] == 401
    opened.close()
    assert proving.fault_in(path, is_shared=True) == ""


def test_a_file_that_grows_while_it_is_opened_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.mdb"
    grow(path)
    really_open, times = lmdb.open, 0

    def open_or_grow(*words: Any, **options: Any) -> Any:
        nonlocal times
        times += 1
        if times == 1:
            raise lmdb.MapResizedError("mdb_txn_begin: MDB_MAP_RESIZED")  # as LMDB does where a writer was quick
        return really_open(*words, **options)

    monkeypatch.setattr(lmdb, "open", open_or_grow)
    assert proving._read_all(str(path), True) == ""
    assert times == 2
