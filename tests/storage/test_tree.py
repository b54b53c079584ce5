"""What an earlier copy of an LMDB file lacks of a later commit, whatever was done in between."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest

from rlite_pubsub.storage.pages import meta
from rlite_pubsub.storage.pages.tree import Runs, Unknown, changed_pages

PAGE = 4096
MANY = 1 << 30


class File:
    """An environment whose file is looked at from outside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lmdb = lmdb.Environment(
            str(path), subdir=False, map_size=1 << 28, sync=False, metasync=False, max_dbs=2, max_spare_txns=0
        )
        self.pin = self.lmdb.begin()

    def meta(self) -> bytes:
        """Of the last commit."""
        with self.lmdb.begin() as txn:
            return self.path.read_bytes()[(txn.id() & 1) * PAGE :][: meta.BYTES]

    def read(self, first: int, pages: int) -> bytes:
        with self.path.open("rb") as file:
            return os.pread(file.fileno(), pages * PAGE, first * PAGE)

    def changed(self, before: bytes, most: int = MANY) -> Runs | None:
        return changed_pages(self.read, before, self.meta(), PAGE, most)

    def contents(self) -> dict[bytes, bytes]:
        with self.lmdb.begin() as txn:
            return {bytes(key): bytes(value) for key, value in txn.cursor()}

    def put(self, values: dict[bytes, bytes]) -> None:
        with self.lmdb.begin(write=True) as txn:
            for key, value in values.items():
                txn.put(key, value)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    made = File(tmp_path / "data.mdb")
    yield made
    made.pin.abort()
    made.lmdb.close()


def change(txn: lmdb.Transaction[bytes], luck: random.Random, keys: int) -> None:
    """Some of everything: short and long values, keys anew and over, removals of a few and of nearly all."""
    kind = luck.random()
    for _ in range(luck.choice([1, 3, 40, 400])):
        key = b"%d" % luck.randrange(keys)
        if kind < 0.25:
            txn.delete(key)
        else:
            txn.put(key, luck.randbytes(luck.choice([0, 5, 100, 1900, 2100, 4080, 4081, 9000])))
    if kind > 0.95:
        for key in [bytes(key) for key in txn.cursor().iternext(keys=True, values=False)][luck.randrange(3) :]:
            txn.delete(key)


@pytest.mark.parametrize("seed", range(25))
def test_an_earlier_copy_and_the_changed_pages_are_the_later_commit(tmp_path: Path, seed: int) -> None:
    luck = random.Random(seed)
    file = File(tmp_path / "data.mdb")
    keys = luck.choice([3, 60, 4000])
    copy = bytearray(file.path.read_bytes())
    for _ in range(12):
        file.pin.abort()
        file.pin = file.lmdb.begin()
        before = file.meta()
        for _ in range(luck.randrange(1, 12)):
            with file.lmdb.begin(write=True) as txn:
                change(txn, luck, keys)
        changed = file.changed(before)
        assert changed is not None
        for first, pages in changed:
            copy[len(copy) :] = bytes(max(0, first * PAGE + len(pages) - len(copy)))
            copy[first * PAGE : first * PAGE + len(pages)] = pages
        for place in (0, 1):
            copy[place * PAGE : (place + 1) * PAGE] = file.read(place, 1)
    copied = tmp_path / "copy.mdb"
    copied.write_bytes(copy)
    other = File(copied)
    assert other.contents() == file.contents()
    for _ in range(30):  # its free pages are the same, too, and are used again
        with other.lmdb.begin(write=True) as txn, file.lmdb.begin(write=True) as same:
            luck.seed(seed)
            change(txn, luck, keys)
            luck.seed(seed)
            change(same, luck, keys)
    assert other.contents() == file.contents()
    for one in (file, other):
        one.pin.abort()
        one.lmdb.close()


def test_what_did_not_change_is_not_looked_at(file: File) -> None:
    file.put({b"%0200d" % number: b"x" * (3000 if number % 10 == 0 else 30) for number in range(20_000)})
    before = file.meta()
    file.put({b"%0200d" % 10_005: b"y" * 30})
    looked: list[int] = []

    def read(first: int, pages: int) -> bytes:
        looked.append(first)
        return file.read(first, pages)

    changed = changed_pages(read, before, file.meta(), PAGE, MANY)
    assert changed is not None
    depth = file.lmdb.stat()["depth"]
    assert depth > 2
    assert len(changed) <= depth + 3  # the way from the root to one leaf, and the free pages'
    assert len(looked) <= 2 * len(changed)


def test_more_than_one_wants_is_none(file: File) -> None:
    file.put({b"%06d" % number: b"x" * 30 for number in range(20_000)})
    full = file.meta()
    file.put({b"%06d" % number: b"y" * 30 for number in range(0, 20_000, 100)})
    changed = file.changed(full)
    assert changed is not None
    pages = sum(len(run) for _, run in changed) // PAGE
    assert file.changed(full, pages) is not None
    assert file.changed(full, pages - 1) is None
    file.put({b"a": bytes(100 * PAGE)})
    assert file.changed(full, pages + 50) is None


def test_what_is_gone_counts_too(file: File) -> None:
    """Else to look at a store that was emptied would take as long as to write it."""
    file.put({b"%06d" % number: b"x" * 500 for number in range(20_000)})
    full = file.meta()
    with file.lmdb.begin(write=True) as txn:
        for number in range(1, 20_000):
            txn.delete(b"%06d" % number)
    assert file.changed(full, 500) is None


def test_nothing_is_what_changes_nothing(file: File) -> None:
    file.put({b"a": b"b"})
    assert file.changed(file.meta()) == []


def test_what_is_not_known_is_refused(file: File) -> None:
    before = file.meta()
    named = file.lmdb.open_db(b"named")
    with file.lmdb.begin(write=True) as txn:
        txn.put(b"a", b"b", db=named)
    with pytest.raises(Unknown, match="a tree of its own"):
        file.changed(before)


def test_a_page_that_is_not_what_it_should_be_is_refused(file: File) -> None:
    before = file.meta()
    file.put({b"a": b"b" * 5000})
    pages = {first: run for first, run in file.changed(before) or []}
    for first, run in pages.items():
        damaged = bytearray(run)
        damaged[0] ^= 1

        def read(number: int, count: int, bad: int = first, instead: bytes = bytes(damaged)) -> bytes:
            return instead if number == bad else file.read(number, count)

        with pytest.raises(Unknown):
            changed_pages(read, before, file.meta(), PAGE, MANY)
    with pytest.raises(Unknown, match="pages of 4096 bytes"):
        changed_pages(file.read, before, file.meta(), 2 * PAGE, MANY)


@pytest.mark.parametrize(
    ("at", "what"),
    [
        (12, "cut off"),  # the end of the places
        (16, "a node beyond its end"),  # the place of the first node
        (4090, "a value beyond its end"),  # the length of its key, below
    ],
)
def test_a_page_that_points_beyond_its_end_is_refused(file: File, at: int, what: str) -> None:
    before = file.meta()
    file.put({b"a": b"b" * 5000})
    leaf = next(first for first, run in file.changed(before) or [] if len(run) == PAGE and run[10] & 2)
    damaged = bytearray(file.read(leaf, 1))
    if at == 4090:
        at = int.from_bytes(damaged[16:18], "little") + 6
    damaged[at : at + 2] = b"\xff\xff"

    def read(number: int, count: int) -> bytes:
        return bytes(damaged) if number == leaf else file.read(number, count)

    with pytest.raises(Unknown, match=what):
        changed_pages(read, before, file.meta(), PAGE, MANY)
