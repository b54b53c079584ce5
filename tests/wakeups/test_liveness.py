"""Liveness with real processes: only a lock that was got is proof of death."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlite_pubsub.wakeups import liveness
from rlite_pubsub.wakeups.liveness import AlreadyHeld, Liveness, Verdict, probe

HOLDER = """
import sys
from pathlib import Path
from rlite_pubsub.wakeups.liveness import Liveness
lock = Liveness.hold(Path(sys.argv[1]), int(sys.argv[2]))
"""
WAIT = "print('ready', flush=True); sys.stdin.read()"
NOBODY = 65534

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[subprocess.Popen[bytes]] = []

    def start_holder(subscriber: int, more: str = WAIT) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", HOLDER + more, str(tmp_path), str(subscriber)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"ready")
        return process

    yield start_holder
    for process in started:
        process.kill()
        process.communicate()


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def released(verdict: liveness.Probe) -> Verdict:
    if verdict.lock:
        verdict.lock.release()
    return verdict.verdict


def test_a_holder_in_another_process_is_alive_until_it_is_killed(tmp_path: Path, start: Start) -> None:
    holder = start(1)
    assert probe(tmp_path, 1).verdict is Verdict.ALIVE
    kill(holder)
    assert released(probe(tmp_path, 1)) is Verdict.DEAD


def test_the_proof_is_kept_so_that_a_second_prober_gets_none(tmp_path: Path, start: Start) -> None:
    kill(start(1))
    first = probe(tmp_path, 1)
    assert first.verdict is Verdict.DEAD and first.lock is not None
    program = "import sys; from pathlib import Path; from rlite_pubsub.wakeups.liveness import probe; "
    program += "print(probe(Path(sys.argv[1]), 1).verdict.name)"
    second = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=True)
    assert second.stdout == b"ALIVE\n"
    assert probe(tmp_path, 1).verdict is Verdict.ALIVE
    first.lock.remove()
    assert os.listdir(tmp_path) == []


def test_a_subscriber_of_this_process_is_never_dead(tmp_path: Path) -> None:
    with Liveness.hold(tmp_path, 1) as lock:
        assert probe(tmp_path, 1, create=True).verdict is Verdict.ALIVE
        lock.path.unlink()  # by hand
        assert probe(tmp_path, 1, create=True).verdict is Verdict.ALIVE
        assert os.listdir(tmp_path) == []


def test_what_is_held_cannot_be_held_again(tmp_path: Path, start: Start) -> None:
    start(1)
    with pytest.raises(AlreadyHeld):
        Liveness.hold(tmp_path, 1)


def test_a_missing_file_says_nothing_unless_it_is_made_and_locked(tmp_path: Path) -> None:
    assert probe(tmp_path, 1).verdict is Verdict.UNKNOWN
    made = probe(tmp_path, 1, create=True)
    assert made.verdict is Verdict.DEAD and made.lock is not None and made.lock.created
    made.lock.remove()
    assert probe(tmp_path / "nowhere", 1, create=True).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("odd", ["directory", "fifo", "symlink"])
def test_an_odd_file_is_unknown(tmp_path: Path, odd: str) -> None:
    path = liveness.lock_path(tmp_path, 1)
    if odd == "directory":
        path.mkdir()
    elif odd == "fifo":
        os.mkfifo(path)
    else:
        (tmp_path / "target").touch()
        path.symlink_to(tmp_path / "target")
    assert probe(tmp_path, 1, create=True).verdict is Verdict.UNKNOWN


def test_a_lock_file_that_may_not_be_read_is_unknown() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user, and needs to: it reads everything itself")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        Liveness.hold(folder, 1).release()
        liveness.lock_path(folder, 1).chmod(0)
        child = os.fork()
        if child == 0:
            os.setuid(NOBODY)
            os._exit(0 if probe(folder, 1, create=True).verdict is Verdict.UNKNOWN else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert released(probe(folder, 1)) is Verdict.DEAD  # to root, who may read it


def test_a_file_replaced_between_open_and_lock_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Liveness.hold(tmp_path, 1).release()
    path, lock = liveness.lock_path(tmp_path, 1), liveness._lock

    def replaced_then_locked(descriptor: int) -> bool:
        path.unlink()
        path.touch()
        return lock(descriptor)

    monkeypatch.setattr(liveness, "_lock", replaced_then_locked)
    assert probe(tmp_path, 1).verdict is Verdict.UNKNOWN


def test_a_holder_whose_file_a_reaper_removes_in_between_makes_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = liveness.lock_path(tmp_path, 1), liveness._lock
    locked: list[int] = []

    def unlinked_then_locked(descriptor: int) -> bool:
        if not locked:
            path.unlink()
        locked.append(descriptor)
        return lock(descriptor)

    monkeypatch.setattr(liveness, "_lock", unlinked_then_locked)
    with Liveness.hold(tmp_path, 1):
        assert len(locked) == 2
        assert path.exists()


def test_a_forked_child_does_not_keep_its_dead_parent_alive(tmp_path: Path) -> None:
    more = "import os, time\nif os.fork() == 0:\n print('ready', os.getpid(), flush=True)\ntime.sleep(600)"
    command = [sys.executable, "-c", HOLDER + more, str(tmp_path), "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline().split()[1])
        try:
            assert probe(tmp_path, 1).verdict is Verdict.ALIVE
            kill(parent)
            assert released(probe(tmp_path, 1)) is Verdict.DEAD
        finally:
            os.kill(child, 9)


def test_a_program_started_by_the_holder_does_not_keep_it_alive(tmp_path: Path) -> None:
    more = "import subprocess\nprogram = subprocess.Popen(['sleep', '600'], close_fds=False)\n"
    more += "print('ready', program.pid, flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", HOLDER + more, str(tmp_path), "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        program = int(parent.stdout.readline().split()[1])
        try:
            kill(parent)
            assert released(probe(tmp_path, 1)) is Verdict.DEAD
        finally:
            os.kill(program, 9)
