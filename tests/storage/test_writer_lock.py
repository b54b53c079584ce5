"""Law 9, where it begins: who is to write takes a lock that can be tried, and is told who has it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import pytest
from patience import PATIENCE_S, until
from stopped_writer import MARK, StoppedWriter

from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.locks import mutex
from rlite_pubsub.storage.locks.mutex import OWNER, THREAD
from rlite_pubsub.storage.locks.writer_lock import WriterLock
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.turn import Turn

KEY = b"\xffkey"


def lock_of(environment: Environment) -> WriterLock:
    assert environment.writer is not None
    return environment.writer


def put(environment: Environment, value: bytes = b"1") -> None:
    environment.write(lambda txn: txn.put(KEY, value))


def get(environment: Environment, key: bytes = KEY) -> bytes | None:
    return environment.read(lambda txn: txn.get(key))


@pytest.mark.parametrize("name", ["live", "data"])
def test_who_cannot_write_is_told_who_can_and_nothing_is_done(store: Store, name: str) -> None:
    environment: Environment = getattr(store, name)
    lock_of(environment).wait_for_holder(0.05)
    with StoppedWriter(store.folder, name) as writer:
        with pytest.raises(StoreHeld, match=rf"process {writer.pid} \(python.*\), which is T \(stopped\)"):
            put(environment)
        assert get(environment) is None
        writer.go_on()
        put(environment)
        assert get(environment) == b"1"
        assert get(environment, b"\xff" + MARK.encode()) == b""


def test_the_other_environment_goes_on(store: Store) -> None:
    with StoppedWriter(store.folder, "live"):
        put(store.data)
    with StoppedWriter(store.folder, "data"):
        put(store.live)


def test_a_turn_is_not_begun_either_and_another_is_when_the_holder_is_killed(store: Store) -> None:
    lock_of(store.data).wait_for_holder(0.05)
    turn = Turn(store.data, lambda: None)
    with StoppedWriter(store.folder) as writer:
        with pytest.raises(StoreHeld):
            turn.begin(write=True)
        turn.begin(write=False)
        turn.end(commit=False)
        writer.kill()
        turn.begin(write=True).put(KEY, b"2")
        turn.end(commit=True)
    assert get(store.data) == b"2"
    assert get(store.data, b"\xff" + MARK.encode()) is None


def test_a_loop_waits_for_a_moment_once_and_asks_from_then_on(store: Store) -> None:
    lock = lock_of(store.data)
    lock.wait_for_nobody()
    with StoppedWriter(store.folder) as writer:
        for _ in range(100):
            with pytest.raises(StoreHeld):
                put(store.data)
            assert not lock.is_free()
        assert lock.held_s() > 0
        writer.go_on()
        assert lock.is_free()
        assert lock.held_s() == 0
        put(store.data)


@pytest.mark.parametrize("waits", ["in libc", "by trying"])
def test_who_waits_does_so_by_no_wall_clock(store: Store, monkeypatch: pytest.MonkeyPatch, waits: str) -> None:
    """One that is set back meanwhile would have it wait for as long."""
    lock_of(store.data).patience_s = 0.05
    if waits == "by trying":
        monkeypatch.setattr(mutex, "_clocklock", None)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 3600)
    told: list[StoreHeld] = []

    def write() -> None:
        try:
            put(store.data)
        except StoreHeld as held:
            told.append(held)

    with StoppedWriter(store.folder) as writer:
        waiting = threading.Thread(target=write)
        waiting.start()
        waiting.join(PATIENCE_S / 10)
        assert told
        writer.go_on()
    waiting.join()
    put(store.data)
    assert get(store.data) == b"1"


def test_nobody_comes_before_the_line(store: Store) -> None:
    """Once somebody stands in line, only who is served there gets it."""
    lock = lock_of(store.data)
    lock.wait_for_nobody()
    with StoppedWriter(store.folder) as writer:
        lock.line = 1
        writer.kill()
        with pytest.raises(StoreHeld):
            put(store.data)
        assert lock.is_free()
        lock.begin_serving()
        put(store.data)


def test_who_was_alone_and_stopped_is_named_to_who_comes(tmp_path: Path) -> None:
    """It took no lock of ours, for there was nobody else."""
    with StoppedWriter(tmp_path) as writer, Store.open(tmp_path) as store:
        lock_of(store.data).wait_for_holder(0.05)
        with pytest.raises(StoreHeld, match=f"process {writer.pid} "):
            put(store.data)
        writer.go_on()
        put(store.data)


def test_the_lock_of_a_process_that_was_killed_in_a_transaction_is_free(store: Store) -> None:
    for _ in range(3):
        with StoppedWriter(store.folder) as writer:
            writer.kill()
            put(store.data)


def test_who_is_alone_takes_no_lock(store: Store) -> None:
    put(store.data)
    assert lock_of(store.data)._mutex is None


def test_work_that_raises_lets_the_lock_go(store: Store) -> None:
    def fail(txn: Txn) -> None:
        raise KeyboardInterrupt

    with StoppedWriter(store.folder) as writer:
        writer.go_on()
        turn = Turn(store.data, lambda: None)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                store.data.write(fail)
            turn.begin(write=True)
            turn.end(commit=False)
            assert lock_of(store.data).holder() is None


def test_threads_of_a_process_take_turns(store: Store) -> None:
    with StoppedWriter(store.folder) as writer:
        writer.go_on()

        def count() -> None:
            for _ in range(200):
                store.data.write(lambda txn: txn.put(KEY, b"%d" % (int(txn.get(KEY) or b"0") + 1)))

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert get(store.data) == b"800"


def test_two_processes_take_turns(store: Store, start: Callable[..., Any]) -> None:
    program = start(
        """
        import sys
        from rlite_pubsub.storage.store import Store
        with Store.open(sys.argv[1]) as store:
            print("open", flush=True)
            for _ in range(2000):
                store.data.write(lambda txn: txn.put(b"\\xffkey", b"%d" % (int(txn.get(b"\\xffkey") or b"0") + 1)))
        """,
        store.folder,
    )
    assert program.line() == "open"
    for _ in range(2000):
        store.data.write(lambda txn: txn.put(KEY, b"%d" % (int(txn.get(KEY) or b"0") + 1)))
    assert program.end() == 0
    assert get(store.data) == b"4000"


def test_the_writer_of_lmdb_stands_where_we_look(tmp_path: Path) -> None:
    """In its lock file, by which who was alone until now is seen to be at work."""
    environment = lmdb.Environment(str(tmp_path / "x.mdb"), subdir=False)
    with environment.begin(write=True):
        words = memoryview((tmp_path / "x.mdb-lock").read_bytes()[:192]).cast("I")
        assert words[16 + OWNER] & THREAD == threading.get_native_id()
    assert (memoryview((tmp_path / "x.mdb-lock").read_bytes()[:192]).cast("I"))[16 + OWNER] == 0
    environment.close()



def can_put(environment: Environment) -> bool:
    try:
        put(environment)
    except StoreHeld:
        return False
    return True


def test_who_is_stopped_while_it_saves_a_checkpoint_is_not_waited_for_either(
    store: Store, start: Callable[..., Any]
) -> None:
    program = start(
        """
        import fcntl, os, signal, sys
        safe = os.open(sys.argv[1], os.O_RDWR)
        fcntl.flock(safe, fcntl.LOCK_EX)
        print("held", flush=True)
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        store.folder / "data.safe",
    )
    assert program.line() == "held"
    with StoppedWriter(store.folder) as writer:  # others have written what is not safe
        writer.go_on()
    lock_of(store.data).wait_for_nobody()
    put(store.live)
    with pytest.raises(StoreHeld, match=rf"process {program.process.pid} \(python.*\), which is T .*data.safe"):
        put(store.data)
    syncing = Syncing(store.data)
    program.kill()
    until(lambda: can_put(store.data), "what a thread makes safe")
    syncing.close()


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_loop_that_has_lent_it_writes_again_when_it_is_given_back(store: Store, is_alone: bool) -> None:
    environment, lock = store.data, lock_of(store.data)
    assert not environment.lend()  # nobody waits for who writes here
    store.wait_for_no_writer()
    if not is_alone:
        with StoppedWriter(store.folder) as another:
            another.go_on()
    assert environment.lend()
    with pytest.raises(StoreHeld):
        environment.lend()
    reached, opened = threading.Event(), threading.Event()

    def work(txn: Txn) -> None:
        txn.put(KEY, b"2")
        reached.set()
        opened.wait()

    def borrow() -> None:
        environment.borrow()
        try:
            environment.write(work)
        finally:
            environment.give_back()

    thread = threading.Thread(target=borrow)
    assert not lock.is_written_here
    thread.start()
    reached.wait()
    assert lock.is_written_here
    with pytest.raises(StoreHeld, match=f"process {os.getpid()} "):
        put(environment)
    with pytest.raises(StoreHeld):
        environment.check_write()
    assert not lock.is_free()
    assert get(environment) is None
    put(store.live)
    opened.set()
    thread.join()
    assert lock.is_free()
    assert get(environment) == b"2"
    put(environment)
    assert get(environment) == b"1"


LET_GO_OF_HELD = """
import sys
from pathlib import Path
from rlite_pubsub.storage.locks.writer_lock import WriterLocks
from rlite_pubsub.storage.log.writer import LogWriterLock

def opened(name):
    folder = Path(sys.argv[1], name)
    folder.mkdir()
    locks = WriterLocks(folder, is_alone=True)
    return locks, LogWriterLock(locks, is_alone=True)

locks, lock = opened("one")
others, other = opened("other")
lock.take()
lock.close()
locks.close()
del lock, locks
other.take()
other.release()
"""


def test_a_lock_that_is_closed_while_it_is_held_is_given_back(tmp_path: Path) -> None:
    """The C library keeps a list of what a thread holds, in the memory of the locks: that must not go before."""
    done = subprocess.run([sys.executable, "-c", LET_GO_OF_HELD, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
