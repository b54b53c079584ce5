"""A store is followed by a process of its own: each state that it tells of can be restored and is exact, whoever is
killed, and at whatever step."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import diary
import pytest
from bucket import Bucket
from patience import PATIENCE_S, until
from ports import free_port
from server_process import Serve
from shipper_process import Shipper, faults, restored, target_of

from rlite_pubsub.storage.commons import backup_state
from rlite_pubsub.storage.commons.backup_state import BackupState

KeepDiary = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def ship(tmp_path: Path) -> Iterator[Callable[..., Shipper]]:
    """Start one on the store `store`, with the target `target`."""
    begun: list[Shipper] = []

    def start(**options: Any) -> Shipper:
        begun.append(Shipper(tmp_path / "store", str(tmp_path / "target"), **options))
        return begun[-1]

    yield start
    for each in begun:
        each.kill()


def ended_before(notes: Path, time_ms: int) -> int:
    return max((note.number for note in diary.notes(notes) if note.ended_ms < time_ms), default=0)


def began_behind(notes: Path, time_ms: int) -> list[int]:
    return [note.number for note in diary.notes(notes) if note.began_ms > time_ms]


def test_each_second_that_is_kept_is_restored_as_it_was(
    tmp_path: Path, notes: Path, keep_diary: KeepDiary, ship: Callable[..., Shipper], replay: diary.Replay
) -> None:
    store, target = tmp_path / "store", str(tmp_path / "target")
    writer = keep_diary(str(store))
    until(lambda: len(diary.notes(notes)) > 10, "some history")
    shipper = ship()
    until(lambda: shipper.state.snapshots, "a snapshot")
    before = shipper.state.pieces
    until(lambda: shipper.state.pieces >= before + 6, "some changes")
    shipper.kill()
    as_of_ms = shipper.state.as_of_ms
    writer.kill()
    writer.wait()
    (chain,) = target_of(target).chains()
    states = list(chain.states())
    assert len(states) >= 6
    before_ms = 0
    for place, (time_ms, _) in enumerate(states):
        if place in (0, 1, len(states) // 2, len(states) - 1):
            found, digest = restored(target, tmp_path / f"back{place}", time_ms)
            assert digest == replay.digest(found), "it is the state of one transaction, and nothing else"
            assert found >= ended_before(notes, before_ms)
            assert found not in began_behind(notes, time_ms)
        before_ms = time_ms
    assert found >= ended_before(notes, as_of_ms), "what it had told of is there"


@pytest.mark.parametrize("failpoint", ["backup-change-written", "backup-manifest-written", "cold-file-renamed",
                                       "backup-file-deleted"])  # fmt: skip
def test_whatever_it_is_killed_at_what_was_told_of_is_there_and_another_goes_on(
    tmp_path: Path, notes: Path, keep_diary: KeepDiary, ship: Callable[..., Shipper], failpoint: str
) -> None:
    store, target = tmp_path / "store", str(tmp_path / "target")
    writer = keep_diary(str(store))
    until(lambda: len(diary.notes(notes)) > 10, "some history")
    first = ship(retain_s=1)
    until(lambda: first.state.snapshots and first.state.pieces > 2, "a snapshot and some changes")
    first.kill()
    as_of_ms = first.state.as_of_ms
    killed = ship(retain_s=1, failpoint=failpoint)
    assert killed.exit_code() == -signal.SIGKILL
    told_ms = max(as_of_ms, killed.state.as_of_ms)
    assert not faults(target)
    assert restored(target, tmp_path / "back")[0] >= ended_before(notes, told_ms)
    last = ship(retain_s=1)
    until(lambda: last.state.snapshots > 0, "a snapshot of the next one")
    writer.kill()
    writer.wait()
    last.end()
    assert restored(target, tmp_path / "end")[0] >= diary.notes(notes)[-1].number
    assert not faults(target)


def test_what_is_older_than_is_to_be_retained_goes(
    tmp_path: Path, notes: Path, keep_diary: KeepDiary, ship: Callable[..., Shipper]
) -> None:
    keep_diary(str(tmp_path / "store"))
    until(notes.exists, "a store")
    shipper = ship(retain_s=2)
    until(lambda: shipper.state.snapshots > 0, "a snapshot")
    first = next(iter(target_of(str(tmp_path / "target")).chains()))
    until(lambda: shipper.state.snapshots > 3, "some snapshots")
    until(lambda: not (tmp_path / "target" / first.snapshots[0].path).exists(), "the end of the first")
    shipper.kill()
    assert not faults(str(tmp_path / "target"))


def test_two_follow_a_store_and_one_is_at_it(tmp_path: Path, ship: Callable[..., Shipper]) -> None:
    import rlite_pubsub

    store = tmp_path / "store"
    with rlite_pubsub.Redis(str(store)) as client:
        client.set("n", 1)
        first, second = ship(), ship()
        until(lambda: first.state.snapshots or second.state.snapshots, "a snapshot")
        working, waiting = (first, second) if first.state.snapshots else (second, first)
        assert not waiting.state.snapshots
        working.kill()
        client.set("n", 2)
        until(lambda: waiting.state.snapshots, "the other's")
        waiting.end()
    assert restored(str(tmp_path / "target"), tmp_path / "back")[0] == 2


# -- a server's


def persistence(peer: Any) -> dict[str, str]:
    lines = peer.do("INFO", "persistence").decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)


def answer_of(http_port: int, path: str) -> str:
    with urlopen(f"http://127.0.0.1:{http_port}{path}", timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


def test_save_and_its_kin_mean_the_backup_and_a_killed_server_loses_nothing_of_it(
    tmp_path: Path, serve: Serve, notes: Path, keep_diary: KeepDiary, replay: diary.Replay
) -> None:
    target = str(tmp_path / "target")
    server = serve("--backup-to", target)
    with server.connect() as peer:
        assert persistence(peer)["save_means"] == "backup"
        peer.do("SET", "n", 0)
        assert peer.do("SAVE") == b"OK"
        assert restored(target, tmp_path / "zero")[0] == 0
        saved = peer.do("LASTSAVE")
        until(lambda: int(peer.do("TIME")[0]) > saved, "another second")
        assert peer.do("BGSAVE") == b"Background saving started"
        until(lambda: peer.do("LASTSAVE") > saved, "the end of BGSAVE")
        until(lambda: persistence(peer)["rdb_bgsave_in_progress"] == "0", "the end of BGSAVE")
        keep_diary(f"redis://127.0.0.1:{server.port}")
        until(lambda: len(diary.notes(notes)) > 50, "some history")
        found = persistence(peer)
        assert found["backup_target"] == target and found["backup_last_error"] == "" and int(found["backup_bytes"])
        state = backup_state.read(server.store_folder)
        assert state is not None
    assert server.end(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not Path(f"/proc/{state.pid}").exists(), "the end of the process that ships")
    found_number, digest = restored(target, tmp_path / "back")
    assert found_number >= diary.notes(notes)[-1].number
    assert digest == replay.digest(found_number)


def test_without_a_target_save_means_a_checkpoint(serve: Serve) -> None:
    with serve().connect() as peer:
        assert peer.do("SAVE") == b"OK"
        found = persistence(peer)
        assert found["save_means"] == "checkpoint"
        assert not any(word.startswith("backup_") for word in found)


def test_a_target_that_takes_nothing_is_told_of(tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "target").write_text("a file")
    http_port = free_port()
    server = serve("--backup-to", str(tmp_path / "target"), "--http-port", str(http_port))
    with server.connect() as peer:
        assert str(peer.do("SAVE")).startswith("ERR the backup has failed: ")
        metrics, warnings = (answer_of(http_port, path) for path in ("/metrics", "/api/stats"))
        assert "rlite_backup_lag_seconds -0.001" in metrics and "rlite_backup_failures_total 0.0" not in metrics
        assert "there is no backup yet: " in warnings
        found = persistence(peer)
        assert found["rdb_last_bgsave_status"] == "err" and "target" in found["backup_last_error"]
        (tmp_path / "target").unlink()
        until(lambda: peer.do("SAVE") == b"OK", "a target")
        assert persistence(peer)["backup_last_error"] == ""
        assert "rlite_backup_lag_seconds 0.0" in answer_of(http_port, "/metrics")
        assert "backup" not in answer_of(http_port, "/api/stats")


def test_target_within_the_store_keeps_a_server_from_starting(tmp_path: Path, serve: Serve) -> None:
    server = serve("--backup-to", str(tmp_path / "store" / "backups"), wait=False)
    assert server.exit_code() == 1
    assert "is lost with it" in server.log() + server.output()


def test_a_bucket_that_goes_away_is_caught_up_with_and_no_secret_is_shown(
    tmp_path: Path, serve: Serve, bucket: Bucket, notes: Path, keep_diary: KeepDiary, replay: diary.Replay
) -> None:
    url = bucket.url.replace("/history", "/backup") + "&access_key=test&secret_key=hush"
    server = serve("--backup-to", url)
    with server.connect() as peer:
        peer.do("SET", "n", 0)
        assert peer.do("SAVE") == b"OK"
        writer = keep_diary(f"redis://127.0.0.1:{server.port}")
        until(lambda: int(persistence(peer)["backup_pieces"]) > 1, "some changes")
        bucket.end()
        until(lambda: persistence(peer)["backup_last_error"], "a failure")
        until(lambda: int(persistence(peer)["backup_waiting_bytes"]), "what waits")
        assert peer.do("SET", "other", "goes on") == b"OK"
        until(lambda: "Can't back up" in server.log() + server.output(), "a line in the log")
        peer.do("DEL", "other")
        bucket.begin()
        until(lambda: persistence(peer)["backup_last_error"] == "", "the bucket")
        writer.kill()
        writer.wait()
        until(lambda: peer.do("SAVE") == b"OK", "what waited")
        shown = str(persistence(peer)) + server.log() + server.output()
        state = backup_state.read(server.store_folder) or BackupState()
        shown += str(state) + Path(f"/proc/{state.pid}/cmdline").read_text()
        assert "hush" not in shown
    found, digest = restored(url, tmp_path / "back")
    assert found >= diary.notes(notes)[-1].number
    assert digest == replay.digest(found)
    assert not faults(url)
