"""A backup of rows: what was copied while others wrote, and the changes over it, are the store as it was at the end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from patience import until

from rlite_pubsub.backup import rows
from rlite_pubsub.backup.errors import PieceDamaged, TrailLost
from rlite_pubsub.backup.once import backup
from rlite_pubsub.backup.piece import Piece
from rlite_pubsub.backup.restoring import check_places, restore
from rlite_pubsub.backup.row_copying import RowCopying
from rlite_pubsub.backup.row_trail import RowTrail
from rlite_pubsub.backup.rows import RowContent, RowPiece
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.verifying import verify
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.log.following import kept_from
from rlite_pubsub.storage.log.rows_file import RowsFile
from rlite_pubsub.storage.log.transaction import POSITION
from rlite_pubsub.storage.store import Store

WINDOW_BYTES = 16 << 10
State = dict[bytes, bytes]


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLITE_STORE_ENGINE", "log")
    monkeypatch.setenv("RLITE_STORE_WINDOW_BYTES", str(WINDOW_BYTES))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def state_of(store: Store) -> State:
    return store.data.read(lambda txn: {key: value for key, value in txn.cursor().iternext() if key != POSITION})


def change(store: Store, dice: random.Random, rows: int) -> None:
    def work(txn: Any) -> None:
        for _ in range(rows):
            key = b"%c%03d" % (dice.choice(b"Kqt"), dice.randrange(400))
            if dice.random() < 0.3:
                txn.delete(key)
            else:
                txn.put(key, dice.randbytes(dice.choice((0, 20, 300, 9000))))

    store.data.write(work)


def target_of(folder: Path) -> BackupTarget:
    return BackupTarget(open_place(str(folder), folder.parent))


def test_backups_of_a_store_with_a_log_are_whole_and_each_is_restored(store: Store, tmp_path: Path) -> None:
    dice, times = random.Random(4), count(1_000_000)
    place = open_place(str(tmp_path / "target"), tmp_path)
    for number in range(3):
        for _ in range(30):
            change(store, dice, 20)
        backup(store, place, lambda: next(times))
        before = state_of(store)
        found = restore(target_of(tmp_path / "target"), tmp_path / f"restored {number}")
        assert found.commit == store.data.last_commit()
        with Store.open(tmp_path / f"restored {number}") as opened:
            assert state_of(opened) == before
    assert [each.fault for each in verify(target_of(tmp_path / "target")) if each.fault] == []


@pytest.mark.parametrize("is_of_pages", [True, False])
def test_snapshot_of_rows_that_names_a_piece_of_pages_is_damaged(is_of_pages: bool) -> None:
    piece = Piece("", {}, []) if is_of_pages else RowPiece("", {}, [])
    with pytest.raises(PieceDamaged, match="pages" if is_of_pages else "rows"):
        check_places("piece", piece, b"" if is_of_pages else b"meta")


def piece_of(content: RowContent) -> tuple[str, RowPiece]:
    return "pieces/one", rows.unpack("pieces/one", content.packed())


def restored(folder: Path, pieces: list[tuple[str, RowPiece]], commit: int) -> State:
    folder.mkdir()
    file = RowsFile(folder / "data.mdb")
    for _, piece in pieces:
        file.put(piece.rows)
    file.finish(commit)
    file.close()
    with Store.open(folder) as opened:
        assert opened.data.last_commit() >= commit
        return state_of(opened)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_and_the_changes_over_them_are_the_store_at_the_end(store: Store, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(40):
        change(store, dice, 50)
    trail = RowTrail(store, lambda: 1000)
    pieces = []
    for stretch in RowCopying(store.data).stretches():
        pieces.append(piece_of(RowContent(stretch)))
        change(store, dice, 10)
        if dice.random() < 0.5:
            trail.roll()
    for _ in range(20):
        change(store, dice, 5)
        trail.roll()
        cut = trail.cut() if dice.random() < 0.5 else None
        if cut is not None:
            pieces.append((cut.name.path, rows.unpack(cut.name.path, cut.packed)))
    trail.roll()
    cut = trail.cut()
    if cut is not None:
        pieces.append((cut.name.path, rows.unpack(cut.name.path, cut.packed)))
    assert restored(tmp_path / "restored", pieces, trail.standing.commit) == state_of(store)
    trail.end()


def test_who_follows_costs_the_writer_no_wait_and_finds_every_commit(store: Store) -> None:
    trail = RowTrail(store, lambda: 1000)
    before = trail.standing.commit
    is_over = threading.Event()

    def write() -> None:
        dice = random.Random(1)
        for _ in range(600):
            change(store, dice, 5)
        is_over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not is_over.is_set():
        trail.roll()
    writer.join()
    trail.roll()
    assert trail.standing.commit == before + 600 == store.data.last_commit()
    found = trail.cut()
    assert found is not None
    has = {key: value for key, value in rows.unpack("", found.packed).rows if value is not None}
    assert {key: value for key, value in state_of(store).items() if key[:1] in b"Kqt"} == has
    trail.end()


def segments(store: Store) -> list[int]:
    return sorted(int(path.name.rpartition(".")[2]) for path in store.folder.glob("data.log.*"))


def test_segments_are_kept_for_who_follows_and_go_when_it_ends_or_is_too_far_behind(store: Store) -> None:
    dice = random.Random(2)
    trail = RowTrail(store, lambda: 1000)
    for _ in range(60):
        change(store, dice, 10)
    until(lambda: store.data.read(lambda txn: len(txn.layers)) == 1)
    assert segments(store)[0] == 1 and len(segments(store)) > 10
    trail.roll()
    change(store, dice, 10)
    store.data.guard(lambda txn: store.data.log.bring_all_home())  # type: ignore[attr-defined]
    assert len(segments(store)) <= 3
    store.data.log.most_kept_bytes = 10 * WINDOW_BYTES  # type: ignore[attr-defined]
    with pytest.raises(TrailLost):
        for _ in range(300):
            change(store, dice, 10)
        until(lambda: store.data.read(lambda txn: len(txn.layers)) == 1)
        trail.roll()
    assert kept_from(store.folder) is None


FOLLOWER = """
import sys
from rlite_pubsub.storage.store import Store
from rlite_pubsub.backup.row_trail import RowTrail
with Store.open(sys.argv[1]) as store:
    trail = RowTrail(store, lambda: 1000)
    print("follows", flush=True)
    sys.stdin.readline()
"""


def test_one_who_was_killed_keeps_nothing(store: Store) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, store.folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as follower:
        assert follower.stdout is not None and follower.stdout.readline() == b"follows\n"
        assert kept_from(store.folder) is not None
        os.kill(follower.pid, signal.SIGKILL)
    assert kept_from(store.folder) is None and not list((store.folder / "followers").iterdir())


def test_stretch_in_which_nothing_was_changed_is_the_same_in_the_next_snapshot(store: Store) -> None:
    def fill(txn: Any) -> None:
        for number in range(20_000):
            txn.put(b"K%08d" % number, b"%0300d" % number)

    store.data.write(fill)
    before = [RowContent(stretch).digest for stretch in RowCopying(store.data).stretches()]
    store.data.write(lambda txn: txn.put(b"K00010000+", b"new"))
    after = [RowContent(stretch).digest for stretch in RowCopying(store.data).stretches()]
    assert len(before) > 4 and len(set(after) - set(before)) <= 2


def test_piece_whose_rows_are_not_in_order_is_damaged() -> None:
    for disorder in ([(b"b", b""), (b"a", b"")], [(b"a", b""), (b"a", b"")]):
        with pytest.raises(PieceDamaged, match="order"):
            rows.unpack("piece", RowContent(disorder).packed())


@pytest.mark.parametrize("at", [5, 20, 60, 200, -1])
def test_piece_that_was_damaged_is_named(at: int) -> None:
    packed = bytearray(RowContent([(b"a", b"x" * 1000), (b"b", None)], {"some": "head"}).packed())
    assert rows.unpack("piece", bytes(packed)).rows == [(b"a", b"x" * 1000), (b"b", None)]
    packed[at if at < len(packed) else -2] ^= 1
    with pytest.raises(PieceDamaged):
        rows.unpack("piece", bytes(packed))


def test_piece_that_unpacks_to_too_much_is_damaged() -> None:
    packed = RowContent([(b"a", bytes(10_000_000))]).packed()
    assert len(packed) < 100_000
    with pytest.raises(PieceDamaged, match="more than"):
        rows.unpack("piece", packed, 256)
