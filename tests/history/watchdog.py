"""Who has waited for an answer for too long, and then what every process does, and who has which lock of the store."""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from rlite_pubsub.storage.locks import writer_lock
from rlite_pubsub.storage.locks.mutex import OWNER, THREAD
from rlite_pubsub.storage.locks.writer_lock import _seen as seen
from rlite_pubsub.storage.system import holder_of

TOO_LONG_S = 60.0
"""More than a client waits for anything in a history: 50 ms, and for a writer a second."""
TELL = signal.SIGUSR1
"""Whoever gets it writes down the stacks of all of its threads (faulthandler)."""
_TELLING_S = 5.0
_LOOK_S = 0.5
_SLOT = struct.Struct("=QQ")
_SAID_BYTES = 6000
_MUTEX_WORDS = {"live.mdb": 64 // 4, "data.mdb": 128 // 4}


class Slots:
    """What clients are at, in memory that all of them share: how much each has done, and since when it waits."""

    def __init__(self, clients: int) -> None:
        self._memory = mmap.mmap(-1, _SLOT.size * clients)
        self._clients = range(clients)

    def ask(self, client: int) -> None:
        """It asks for something."""
        done, _ = self._read(client)
        _SLOT.pack_into(self._memory, client * _SLOT.size, done, time.monotonic_ns())

    def rest(self, client: int) -> None:
        """It has its answer, or has given up."""
        done, _ = self._read(client)
        _SLOT.pack_into(self._memory, client * _SLOT.size, done + 1, 0)

    @property
    def done(self) -> int:
        """All that was asked for and is over."""
        return sum(self._read(client)[0] for client in self._clients)

    def waiting_s(self) -> dict[int, float]:
        """For how long those who wait have done so."""
        now_ns = time.monotonic_ns()
        asked = {client: self._read(client)[1] for client in self._clients}
        return {client: (now_ns - asked_ns) / 1e9 for client, asked_ns in asked.items() if asked_ns}

    def _read(self, client: int) -> tuple[int, int]:
        done, asked_ns = _SLOT.unpack_from(self._memory, client * _SLOT.size)
        return done, asked_ns


class Watched(Protocol):
    """One process."""

    name: str
    pid: int
    said: Path
    """What it writes, its stacks among them."""

    @property
    def is_over(self) -> bool: ...


class Watchdog:
    """Of one history."""

    def __init__(self, slots: Slots, everybody: Callable[[], Iterable[Watched]], store: Path) -> None:
        self._slots = slots
        self._everybody = everybody
        self._store = store
        self._looks_at = 0.0

    def look(self, too_long_s: float = TOO_LONG_S) -> None:
        """Raises AssertionError, with all that can be seen, when somebody has waited for too long."""
        if time.monotonic() < self._looks_at:
            return
        self._looks_at = time.monotonic() + _LOOK_S
        late = {client: seconds for client, seconds in self._slots.waiting_s().items() if seconds > too_long_s}
        if late:
            told = ", ".join(f"client {client} has waited for {seconds:.1f} s" for client, seconds in late.items())
            raise AssertionError("\n".join([told, *lock_holders(self._store), *stacks(self._everybody())]))


def stacks(everybody: Iterable[Watched]) -> list[str]:
    """Where each process is, by its own account; by the kernel's where it says nothing, as one does that is stopped."""
    living = [one for one in everybody if not one.is_over]
    said_bytes = {one.pid: _size(one.said) for one in living}
    for one in living:
        os.kill(one.pid, TELL)
    until = time.monotonic() + _TELLING_S
    while time.monotonic() < until and any(_size(one.said) == said_bytes[one.pid] for one in living):
        time.sleep(0.01)
    time.sleep(0.1)  # for the rest of what they say
    return [f"{one.name}, {_kernel_says(one.pid)}: {one.said.read_text()[-_SAID_BYTES:]}" for one in living]


def lock_holders(store: Path) -> list[str]:
    """Who has which lock of a store. For a process that has not opened it itself: LMDB would lose its locks."""
    found = []
    for name, at in _MUTEX_WORDS.items():
        words = {
            f"writer.lock for {name}": _word(store / writer_lock.FILE_NAME, at),
            f"LMDB's writer lock of {name}": _word(store / f"{name}-lock", writer_lock._LMDB_WRITER_AT),
            f"LMDB's lock of readers of {name}": _word(store / f"{name}-lock", writer_lock._LMDB_READERS_AT),
        }
        found += [f"{what}: {seen(thread) if thread else 'nobody'}" for what, thread in words.items()]
    for name in ("data.safe", "store.lock"):
        holder = holder_of(store / name) if (store / name).exists() else 0
        found.append(f"{name}: {seen(holder) if holder else 'nobody'}")
    return found


def _word(path: Path, mutex_at: int) -> int:
    try:
        words = memoryview(path.read_bytes()[:192]).cast("I")
    except OSError:
        return 0
    return int(words[mutex_at + OWNER]) & THREAD if len(words) > mutex_at + OWNER else 0


def _kernel_says(pid: int) -> str:
    waits = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        try:
            waits.append(f"{task.name} in {(task / 'wchan').read_text() or '?'}")
        except OSError:
            continue  # it has ended
    return f"{seen(pid)}; {', '.join(waits)}"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
