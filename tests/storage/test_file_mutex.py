"""The writer's lock where libc has no mutex that processes can share: it excludes, and it is let go of by the dead."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import NoReturn

import pytest

from rlite_pubsub.storage import boot
from rlite_pubsub.storage.locks.file_mutex import FileMutex


@pytest.fixture
def memory() -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, 64) as memory:
        yield memory


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mutex"


def test_one_at_a_time_whichever_thread_or_opening(path: Path, memory: mmap.mmap) -> None:
    first, second = FileMutex(path, memory, 0), FileMutex(path, memory, 0)
    first.make()
    assert first.try_lock() and first.is_mine() and first.holder() == os.getpid()

    found: list[bool] = []
    thread = Thread(
        target=lambda: found.extend([first.try_lock(), second.try_lock(), second.lock(0.01), first.is_mine()])
    )
    thread.start()
    thread.join()
    assert found == [False, False, False, False]

    first.unlock()
    assert second.holder() == 0 and second.lock(1) and not first.try_lock()
    second.unlock()
    first.close(), second.close()


def test_one_that_is_killed_lets_go(path: Path, memory: mmap.mmap) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        held = FileMutex(path, memory, 0)
        held.try_lock()
        os.write(writing, b"!")
        wait_for_the_end()
    mutex = FileMutex(path, memory, 0)
    try:
        os.read(reading, 1)
        assert not mutex.try_lock() and mutex.holder() == child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert mutex.lock(1)
    mutex.unlock()
    mutex.close()
    os.close(reading), os.close(writing)


def wait_for_the_end() -> NoReturn:
    """In a child that is soon killed, and in no case does what its parent does."""
    signal.alarm(60)
    while True:
        signal.pause()


def test_child_of_a_holder_does_not_hold_it(path: Path, memory: mmap.mmap) -> None:
    mutex = FileMutex(path, memory, 0)
    assert mutex.try_lock()
    child = os.fork()
    if child == 0:
        wait_for_the_end()
    mutex.close()  # as the holder's death would
    other = FileMutex(path, memory, 0)
    try:
        assert other.lock(5)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    other.unlock()
    other.close()


def test_boot_id_is_asked_of_the_kernel_where_there_is_no_proc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import ctypes

    class Library:
        """macOS's libc."""

        def __init__(self, name: None) -> None:
            pass

        @staticmethod
        def sysctlbyname(name: bytes, text: ctypes.Array[ctypes.c_char], size: object, new: None, more: object) -> int:
            text.value = b"7D3A-" + name
            return 0

    monkeypatch.setattr(boot, "_BOOT_ID", tmp_path / "none")
    assert boot.boot_id() == b""

    monkeypatch.setattr(ctypes, "CDLL", Library)
    assert boot.boot_id() == b"7D3A-kern.bootsessionuuid"
