"""`rlite-pubsub backup` and `restore`: of a store that a program is writing to, killed at every step."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import diary
import pytest
from patience import until

import rlite_pubsub
from rlite_pubsub.backup import layout, once, room
from rlite_pubsub.backup.restoring import restore
from rlite_pubsub.backup.row_trail import begin_trail
from rlite_pubsub.backup.shipment import Shipment
from rlite_pubsub.backup.target import UNNEEDED_S, BackupTarget, unneeded
from rlite_pubsub.backup.verifying import verify
from rlite_pubsub.cli.doctor import proof
from rlite_pubsub.cold.places import open_place
from rlite_pubsub.storage.store import Store

KeepDiary = Callable[..., "subprocess.Popen[bytes]"]


def run(*words: object, failpoint: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"RLITE_FAILPOINT": failpoint} if failpoint else {})
    command = [sys.executable, "-m", "rlite_pubsub", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def done(*words: object) -> str:
    found = run(*words)
    assert found.returncode == 0, found.stderr
    return found.stdout


def target_of(folder: Path) -> BackupTarget:
    return BackupTarget(open_place(str(folder), folder.parent))


def faults(folder: Path) -> list[str]:
    return [f"{each.path}: {each.fault}" for each in verify(target_of(folder)) if each.fault]


def test_what_is_under_way_stays_while_another_backup_removes_what_is_old(tmp_path: Path) -> None:
    times = itertools.count(time.time_ns() // 1_000_000)
    place = open_place(str(tmp_path / "target"), tmp_path)
    with Store.open(tmp_path / "store") as store:

        def write(value: bytes) -> None:
            store.data.write(lambda txn: txn.put(b"\xffwritten", value))

        shipment = Shipment(BackupTarget(place), store.folder, room.identity(store))
        trail = begin_trail(store, times.__next__)
        begun, contents = trail.standing, trail.contents()
        for value in (b"1", b"2"):
            write(value)
            trail.roll()
            change = trail.cut()
            assert change is not None
            shipment.put_change(change)
            if value == b"1":  # the first one waits for its snapshot until this one is made
                once.backup(store, place, times.__next__)
                once.collect(store, place, next(times))
        pieces = [shipment.put_piece(content) for content in contents]
        shipment.put_manifest(trail.chain, begun.number, trail.standing, pieces, set())
        trail.end()
    restore(BackupTarget(place), tmp_path / "back")
    with Store.open(tmp_path / "back") as back:
        assert back.data.read(lambda txn: txn.get(b"\xffwritten")) == b"2"
    left = list(unneeded(BackupTarget(place), 0, lambda: time.time() + 2 * UNNEEDED_S))
    assert not [path for path in left if path.startswith(layout.CHANGES)], "it has its snapshot"


def test_backups_of_a_store_that_is_written_to_are_each_one_of_its_states(
    tmp_path: Path, notes: Path, keep_diary: KeepDiary, replay: diary.Replay
) -> None:
    store, target = tmp_path / "store", tmp_path / "target"
    writer = keep_diary(str(store))
    until(lambda: len(diary.notes(notes)) > 100, "some history")
    times = []
    for _ in range(2):
        before = diary.notes(notes)[-1].number
        done("backup", store, target)
        times.append((before, diary.notes(notes)[-1].number))
        until(lambda: len(diary.notes(notes)) > times[-1][1] + 20, "more history")  # noqa: B023
    writer.kill()
    writer.wait()
    chains = target_of(target).chains()
    assert len(chains) == 2
    for number, (chain, (before, after)) in enumerate(zip(chains, times, strict=True)):
        back = tmp_path / f"back{number}"
        done("restore", target, back, "--at", chain.snapshots[0].time_ms)
        found, digest = diary.digest(back)
        assert before <= found <= after + 1
        assert digest == replay.digest(found)
        with Store.open(back) as opened:
            assert not list(proof.faults(opened, str(back)))
    assert not faults(target)


def test_pages_that_were_brought_away_once_are_not_brought_again(tmp_path: Path) -> None:
    store, target = tmp_path / "store", tmp_path / "target"
    with rlite_pubsub.Redis(str(store)) as client:
        with client.pipeline() as changes:
            for number in range(20_000):
                changes.set(f"k{number}", os.urandom(400))
            changes.execute()
        done("backup", store, target)
        before = size_of(target)
        client.set("k1", "another")
        done("backup", store, target)
    assert size_of(target) - before < before / 3


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("failpoint", ["cold-file-written", "backup-piece-written", "backup-manifest-written"])
def test_backup_that_is_killed_leaves_the_ones_before_it_and_the_next_goes_on(
    tmp_path: Path, notes: Path, keep_diary: KeepDiary, failpoint: str
) -> None:
    store, target = tmp_path / "store", tmp_path / "target"
    keep_diary(str(store))
    until(lambda: len(diary.notes(notes)) > 10, "some history")
    done("backup", store, target)
    first = target_of(target).chains()[0].snapshots[0]
    assert run("backup", store, target, failpoint=failpoint).returncode == -signal.SIGKILL
    assert not faults(target)
    done("restore", target, tmp_path / "old", "--at", first.time_ms)
    done("backup", store, target)
    done("restore", target, tmp_path / "new")
    assert diary.digest(tmp_path / "old")[0] < diary.digest(tmp_path / "new")[0]


@pytest.mark.parametrize("failpoint", ["restore-written", "restore-opened"])
def test_restore_that_is_killed_leaves_no_store(tmp_path: Path, failpoint: str) -> None:
    store, target, back = tmp_path / "store", tmp_path / "target", tmp_path / "back"
    with rlite_pubsub.Redis(str(store)) as client:
        client.set("a", "b")
    done("backup", store, target)
    assert run("restore", target, back, failpoint=failpoint).returncode == -signal.SIGKILL
    assert not back.exists()
    done("restore", target, back)
    with rlite_pubsub.Redis(str(back)) as client:
        assert client.get("a") == b"b"


def test_retain_removes_what_only_older_states_need(tmp_path: Path) -> None:
    store, target = tmp_path / "store", tmp_path / "target"
    with rlite_pubsub.Redis(str(store)) as client:
        for number in range(3):
            client.set("n", number)
            done("backup", store, target)
    old = layout.piece_of("ab" * 32)
    place = target_of(target).place
    place.write(old, b"of nobody")
    os.utime(target / old, (1, 1))
    assert "files were removed" in done("backup", store, target, "--retain", "1ms")
    chains = target_of(target).chains()
    assert [len(chain.snapshots) for chain in chains] == [1]
    assert not (target / old).exists()
    assert not faults(target)
    assert restore(target_of(target), tmp_path / "back").changes == 0


def test_target_of_another_store_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    for name in ("one", "two"):
        rlite_pubsub.Redis(str(tmp_path / name)).set("a", "b")
    done("backup", tmp_path / "one", target)
    refused = run("backup", tmp_path / "two", target)
    assert refused.returncode == 1
    assert "backup.json: it has the backups of store" in refused.stderr


def test_store_that_was_restored_goes_on_in_its_target(tmp_path: Path) -> None:
    store, target, back = tmp_path / "store", tmp_path / "target", tmp_path / "back"
    rlite_pubsub.Redis(str(store)).set("a", "b")
    done("backup", store, target)
    done("restore", target, back)
    done("backup", back, target)
    assert len(target_of(target).chains()) == 2


def test_target_within_the_store_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store"
    rlite_pubsub.Redis(str(store)).set("a", "b")
    refused = run("backup", store, store / "backups")
    assert refused.returncode == 1
    assert "is lost with it" in refused.stderr
