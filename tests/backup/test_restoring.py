"""What is not restored: over something, what is damaged or missing, what a later version has written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import rlite_pubsub
from rlite_pubsub.backup import manifest, once
from rlite_pubsub.backup.errors import BackupError, FormatNewer, NothingKept, PieceDamaged, PieceMissing, StoreThere
from rlite_pubsub.backup.restoring import restore
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.trail import Trail
from rlite_pubsub.backup.verifying import verify
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.store import Store


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A snapshot, and three changes behind it: `n` is 1, 2, 3."""
    made, store = tmp_path / "target", tmp_path / "store"
    place = open_place(str(made), tmp_path)
    with Store.open(store) as opened, rlite_pubsub.Redis(str(store)) as client:
        client.set("n", 0)
        name = once.backup(opened, place, lambda: 1_000).name
        now_ms = 1_000
        trail = Trail(opened, lambda: now_ms)
        folder = made / "changes" / name.chain
        folder.mkdir(parents=True)
        (made / "snapshots" / trail.chain).mkdir()
        found = json.loads((made / name.path).read_text())
        moved = name._replace(chain=trail.chain)
        found = manifest.read(place, name)._replace(name=moved)
        (made / moved.path).write_bytes(manifest.text(found))
        shutil.rmtree(made / "snapshots" / name.chain)
        for number in range(1, 4):
            client.set("n", number)
            now_ms = 1_000 + number * 1_000
            trail.roll()
            change = trail.cut()
            assert change is not None
            place.write(change.name.path, change.packed)
        trail.end()
    return made


def restored(target: Path, at_ms: int | None = None) -> bytes | None:
    folder = target.parent / f"back{at_ms}"
    restore(BackupTarget(open_place(str(target), target)), folder, at_ms)
    with rlite_pubsub.Redis(str(folder)) as client:
        found: bytes | None = client.get("n")
    return found


def files(target: Path, folder: str) -> list[Path]:
    return sorted(path for path in (target / folder).rglob("*") if path.is_file())


def test_each_state_is_what_it_was(target: Path) -> None:
    times = {None: b"3", 1_000: b"0", 1_999: b"0", 2_000: b"1", 3_500: b"2", 4_000: b"3", 99_000: b"3"}
    assert {at_ms: restored(target, at_ms) for at_ms in times} == times


def test_time_before_the_first_state_is_refused(target: Path) -> None:
    with pytest.raises(NothingKept, match=r"1970-01-01T00:00:00.999Z: the first state is of 1970-01-01T00:00:01.000Z"):
        restored(target, 999)


def test_store_that_is_there_is_not_restored_over(target: Path) -> None:
    there = target.parent / "store"
    before = sorted(there.rglob("*"))
    with pytest.raises(StoreThere, match="new or empty"):
        restore(BackupTarget(open_place(str(target), target)), there)
    assert sorted(there.rglob("*")) == before


def test_empty_folder_may_be_there(target: Path) -> None:
    (target.parent / "back2000").mkdir()
    assert restored(target, 2_000) == b"1"


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize("folder", ["pieces", "changes", "snapshots"])
@pytest.mark.parametrize(("damage", "error"), [(change_a_byte, PieceDamaged), (cut_off, PieceDamaged),
                                               (Path.unlink, PieceMissing)])  # fmt: skip
def test_damaged_and_missing_files_are_named_and_no_store_is_left(
    target: Path, folder: str, damage: Callable[[Path], None], error: type[BackupError]
) -> None:
    path = files(target, folder)[0]
    damage(path)
    if folder == "snapshots" and error is PieceMissing:
        error = NothingKept  # without its manifest there is no snapshot
    name = str(path.relative_to(target))
    with pytest.raises(error) as failure:
        restored(target, 4_000)
    if error is not NothingKept:
        assert name.partition("-1970")[0][:40] in str(failure.value)
    assert not list(target.parent.glob("back*")) and not list(target.parent.glob(".back*"))
    wrong = [each.path for each in verify(BackupTarget(open_place(str(target), target))) if each.fault]
    assert (name in wrong) == (error is PieceDamaged or folder == "pieces")


def test_change_of_another_history_does_not_follow(target: Path) -> None:
    one, two, _ = files(target, "changes")
    other = two.parent / two.name.replace("0000000002", "0000000009")
    two.rename(other)
    shutil.copy(one, two)
    with pytest.raises(PieceDamaged, match="its name is that of another change"):
        restored(target, 4_000)


@pytest.mark.parametrize("what", ["backup.json", "snapshots", "pieces", "changes"])
def test_newer_format_is_refused_and_the_file_named(target: Path, what: str) -> None:
    path = target / what if what.endswith(".json") else files(target, what)[0]
    if path.suffix == ".json":
        said = {word: value for word, value in json.loads(path.read_text()).items() if word != "sha256"} | {"format": 3}
        path.write_bytes(manifest._sealed(said))
    else:
        data = bytearray(path.read_bytes())
        data[11] = 3
        path.write_bytes(data)
    with pytest.raises(FormatNewer, match=f"{path.name}: it has format 3, and this version .* reads format [12]"):
        restored(target)


def test_store_of_a_later_version_is_refused(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlite_pubsub.storage.format.VERSION", 3)
    with pytest.raises(FormatNewer, match=r"snapshots/.*: it has format 4"):
        restored(target)
