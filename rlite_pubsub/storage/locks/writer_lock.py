"""The writer's lock: a lock taken before LMDB's, which can be tried, and which names its holder.

Law 9: nobody waits for the stopped. LMDB's own lock can only be waited for, and a process that is stopped (SIGSTOP, a
debugger, a frozen container) in the middle of a transaction keeps it. So a writer takes this one first, and
LMDB's is free then. A writer that cannot have it learns who has (`StoreHeld`):
 - a loop, which others wait for, after a moment (`is_loop`): it does something else, and asks again (`is_free`).
 - anybody else when its patience is over.

Readers hold a lock, too, for an instant each: LMDB's lock of its table of readers. Only LMDB takes it; `check_readers`
sees whether a process is stopped inside it, before LMDB would wait for that one forever.

It belongs to a thread. A process that has the store open alone does without it: shared memory holds how often the store
has been opened, and as long as that is the number of our own opening there is nobody else. A process that comes makes
the locks, moves that number, and looks at LMDB's lock, too: the one that was alone until then may be in the middle of a
write.

A loop may lend the right to write to a thread of its own process (`lend`), for a large write: until the thread gives it
back, the loop gets StoreHeld, as it does when another process writes.

Processes in several pid namespaces (containers) know each other's threads by no number. Whoever comes from another
namespace than those before it says so in shared memory, and from then on all take a lock of the kernel's first
(guarded_mutex.py).

    writer.lock    openings u64 | made u64 | pid namespace u64 | several namespaces u64 | guards of live.mdb,
                   data.mdb and data.log u64 each | 8 bytes of nothing | mutexes of the same    (64 each)
"""

from __future__ import annotations

import errno
import mmap
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import get_ident, get_native_id
from typing import TYPE_CHECKING, Final, NamedTuple

from rlite_pubsub import permissions
from rlite_pubsub.storage.errors import StoreHeld, StoreUnwritable
from rlite_pubsub.storage.system import pid_namespace, take_blocks

if TYPE_CHECKING:
    from rlite_pubsub.storage.locks.file_mutex import FileMutex
    from rlite_pubsub.storage.locks.guarded_mutex import GuardedMutex
    from rlite_pubsub.storage.locks.mutex import Mutex

FILE_NAME = "writer.lock"
PATIENCE_S = 5.0
"""The directive `writer-patience`, unless it is set."""
MOMENT_S = 0.001
"""How long a loop waits if the holder is stopped, or cannot be seen."""
MOMENTS_S = 0.010
"""How long if it is running."""
WHOLE_S = 0.2
"""How long in the middle of what must not be interrupted."""
_SLICE_S = 0.05
"""Longer waits are divided, because signals are handled between two waits."""
_OPENINGS, _MADE, _NAMESPACE, _SEVERAL = 0, 1, 2, 3
_GUARDS: Final = {"live.mdb": 32, "data.mdb": 40, "data.log": 48}
_PLACES: Final = {"live.mdb": 64, "data.mdb": 128, "data.log": 192}
_BYTES = 256
_LMDB_WRITER_AT = 64 // 4
_LMDB_COMMIT_AT = 48 // 4
_LMDB_READERS_AT = 8 // 4
"""In LMDB's lock file: its writer's mutex, the lower half of the last transaction's number, its readers' mutex."""
_NOBODY_ELSE = memoryview(bytes(8)).cast("Q")
_NOBODY = bytes(_BYTES)
ELSEWHERE: Final = "? (in another pid namespace)"
"""The state of a holder that cannot be seen, because it is in another container."""
_STOPPED = ("T", "t", "?", "Z", "X")


class Holder(NamedTuple):
    """The holder of the lock."""

    pid: int
    name: str
    state: str
    """The kernel's word for it, `T (stopped)`; `? (unknown)` if it cannot be seen from here."""

    def __str__(self) -> str:
        if self.state == ELSEWHERE:
            return f"thread {self.pid} of a process in another pid namespace, such as another container"
        return f"process {self.pid} ({self.name}), which is {self.state}"

    @property
    def is_stopped(self) -> bool:
        """True if it is not about to finish."""
        return self.state[:1] in _STOPPED


class WriterLocks:
    """The writer's locks of one store, as one process has it open."""

    def __init__(self, folder: Path, *, is_alone: bool) -> None:
        """Open the locks; call it while nobody else opens the store. Raises StoreUnwritable."""
        self.folder = folder
        path = folder / FILE_NAME
        try:
            descriptor = permissions.opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
            try:
                take_blocks(descriptor, 0, _BYTES)  # on a full disk this is an error now, instead of a SIGBUS later
                self._memory = mmap.mmap(descriptor, _BYTES)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
        self.numbers = memoryview(self._memory)[: _PLACES["live.mdb"]].cast("Q")
        self._namespace = pid_namespace()
        if is_alone:
            self.numbers[_MADE] = self.numbers[_SEVERAL] = 0
            self.numbers[_NAMESPACE] = self._namespace
        elif self.numbers[_NAMESPACE] != self._namespace:
            self.numbers[_SEVERAL] = 1
        if not is_alone and not self.numbers[_MADE]:
            for name in ("live.mdb", "data.mdb"):
                self.bare_mutex(name).make()
            self.numbers[_MADE] = 1
        self.numbers[_OPENINGS] += 1
        self.alone = self.numbers[_OPENINGS] if is_alone else -1
        """The value of `numbers[0]` as long as no other process has opened the store."""

    @property
    def is_alone(self) -> bool:
        """True if it is known that no other process has the store open."""
        return self.numbers[_OPENINGS] == self.alone

    def be_alone(self) -> None:
        """Note that all others have gone. Call it while nobody else opens the store."""
        self.alone = self.numbers[_OPENINGS]
        self.numbers[_NAMESPACE], self.numbers[_SEVERAL] = self._namespace, 0

    def mutex(self, name: str) -> Mutex | FileMutex | GuardedMutex:
        """Return an environment's mutex, by the name of its file. Raises StoreUnwritable."""
        from rlite_pubsub.storage.locks.mutex import Mutex  # a process that is alone needs none

        mutex = self.bare_mutex(name)
        if not self.numbers[_SEVERAL] or not isinstance(mutex, Mutex):
            return mutex
        from rlite_pubsub.storage.locks.guarded_mutex import GuardedMutex

        return GuardedMutex(self._file_mutex(name, _GUARDS[name]), mutex)

    def bare_mutex(self, name: str) -> Mutex | FileMutex:
        """Return it as it is within one pid namespace."""
        from rlite_pubsub.storage.locks.mutex import IS_TO_BE_HAD, Mutex

        return Mutex(self._memory, _PLACES[name]) if IS_TO_BE_HAD else self._file_mutex(name, _PLACES[name])

    def _file_mutex(self, name: str, place: int) -> FileMutex:
        from rlite_pubsub.storage.locks.file_mutex import FileMutex

        path = self.folder / f"{name}-writer"
        try:
            return FileMutex(path, self._memory, place)
        except OSError as error:
            raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error

    def close(self) -> None:
        """Close the locks, once the environments are closed."""
        self.numbers.release()
        with suppress(BufferError):  # a thread may be looking at a mutex: the memory goes with the last one
            self._memory.close()


class WriterLock:
    """The writer's lock of one environment, as one process has it open."""

    def __init__(self, locks: WriterLocks, environment: Path) -> None:
        self._path = environment
        self._locks = locks
        self.numbers = locks.numbers
        self.alone = locks.alone
        self.patience_s = PATIENCE_S
        self.is_loop = False
        """Others wait for this process's writer: it must not wait."""
        self.loop_patience_s = MOMENTS_S
        """A loop's patience with a holder that is not stopped."""
        self.line = 0
        """How many stand in line for it, in this process. They are served in order, and others not before them."""
        self.is_line_served = False
        self.held_since: float | None = None  # by the monotonic clock: since when it could not be had
        self.is_lent = False
        """Only a thread of this process, and nobody else in it, may write."""
        self.given_back_at = 0.0  # by the monotonic clock
        self._lent_at = 0.0
        self._borrower = 0  # that thread's kernel id; 0: not known yet
        self._keeper = 0  # the thread that keeps it, in Python's numbering; see `kept`
        self.release: Callable[[], int] = _not_taken
        """Release it, in the thread that has taken it."""
        self._take: Callable[[], int] = _not_open
        self._is_clear = False  # nobody is in the middle of a write that began without this lock
        self._mutex: Mutex | FileMutex | GuardedMutex | None = None
        self._guarded: GuardedMutex | None = None  # the same, once there are several pid namespaces
        self._lmdb: Sequence[int] = _NOBODY  # the beginning of LMDB's lock file
        self._lmdb_word = _LMDB_WRITER_AT
        self._readers_word = _LMDB_READERS_AT
        self._thread_bits = 0
        self._seen = (0, 0)

    def be_alone(self) -> None:
        """Do without it from now on, as long as `WriterLocks` say so."""
        self.alone = self._locks.alone
        self._is_clear = False

    def take(self) -> bool:
        """Take it, in this thread. Returns False if that is not needed, because no other process has the store open, or
        because this thread keeps it. Raises StoreHeld."""
        if self.is_lent:
            self._check_loan()
        if self.numbers[_OPENINGS] == self.alone or (self._keeper and self._keeper == get_ident()):
            return False
        if self.numbers[_SEVERAL] and self._guarded is None:
            self._opened()
        if not self.line or self.is_line_served:
            code = self._take()
            if not code or self._opened().took(code):
                if self._is_clear or not self._lmdb_holder():
                    self._is_clear = True
                    self.held_since = None
                    return True
                self.release()
        is_hurried = self.is_hurried
        if is_hurried and (self.line or self.held_since is not None):
            raise self.held()
        self._wait(self.loop_patience_s if is_hurried else self.patience_s, is_hurried)
        return True

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Take it, and keep it over several transactions of this thread. Raises StoreHeld."""
        if not self.take():
            yield
            return
        self._keeper = get_ident()
        try:
            yield
        finally:
            self._keeper = 0
            self.release()

    def wait_for_holder(self, patience_s: float) -> None:
        """Let threads wait this long for it, at most."""
        self.patience_s = patience_s
        self.is_loop = False

    def wait_for_nobody(self) -> None:
        """Do not wait for it: others wait for the thread that takes it, which gets StoreHeld at once."""
        self.is_loop = True

    def begin_whole(self) -> None:
        """Begin an atomic part, up to `end_whole`: a loop waits a little longer."""
        self.loop_patience_s = WHOLE_S

    def end_whole(self) -> None:
        """End the atomic part."""
        self.loop_patience_s = MOMENTS_S

    def begin_serving(self) -> None:
        """Note that a thread that takes it now is in line, and its turn has come."""
        self.is_line_served = True

    def end_serving(self) -> None:
        """Note that a thread that takes it now stands behind those in line."""
        self.is_line_served = False

    def release_if_mine(self) -> None:
        """Like `release`, if an interrupt may have come before it was known whether it was taken."""
        if self._mutex is not None and self._mutex.is_mine() and self._keeper != get_ident():
            self._mutex.unlock()

    def check(self) -> None:
        """Check that it can be had, before a write does anything that could not be undone. Raises StoreHeld."""
        if self.is_lent:
            self._check_loan()
        if self.numbers[_OPENINGS] == self.alone:
            return
        mutex = self._mutex
        if mutex is None or self.numbers[_SEVERAL]:
            mutex = self._opened()
        is_in_line = self.line and not self.is_line_served
        if is_in_line or ((mutex.holder() or not self._is_clear) and not mutex.is_mine()):
            self.take()
            self.release()

    def check_readers(self) -> None:
        """Check before reading that no process is stopped that was about to read. Raises StoreHeld."""
        if self.numbers[_OPENINGS] == self.alone:
            return
        if self._mutex is None or self.numbers[_SEVERAL]:
            self._opened()
        if not self._lmdb[self._readers_word] & self._thread_bits:
            return
        is_hurried = self.is_hurried
        patience_s = MOMENTS_S if is_hurried else self.patience_s
        began = time.monotonic()
        while thread := self._lmdb[self._readers_word] & self._thread_bits:
            waited_s = time.monotonic() - began
            is_known = is_hurried and self.held_since is not None and not self.is_lent
            is_stopped = is_hurried and waited_s >= MOMENT_S and self._reader(thread).is_stopped
            if is_known or is_stopped or waited_s >= patience_s:
                if self.held_since is None:
                    self.held_since = began
                raise StoreHeld(self._path, partial(_said, self._reader, thread, self._path, self.held_s()))
            time.sleep(MOMENT_S / 10)

    def is_free(self) -> bool:
        """Return whether it can be had now. While others keep taking it, this waits for a moment."""
        if self.is_lent:
            return False
        if self.numbers[_OPENINGS] == self.alone:
            return True
        mutex = self._opened()
        if self._lmdb[self._readers_word] & self._thread_bits and self.held_since is not None:
            return False
        seen, self._seen = self._seen, self._in_hand()
        if not (mutex.try_lock() or (seen != self._seen and mutex.lock(MOMENT_S))):
            return False
        is_free = not self._lmdb_holder()
        mutex.unlock()
        if is_free:
            self.held_since = None
        return is_free

    def close(self) -> None:
        """Close it: nobody in this process writes any more. This thread gives it back if it has it: its memory is about
        to go, and the C library would follow the thread's list of what it holds into it."""
        if self._mutex is not None and self._mutex.is_mine():
            self._mutex.unlock()
        self._mutex = self._guarded = None
        self.release, self._take = _not_taken, _not_open
        self.numbers, self.alone = _NOBODY_ELSE, 0
        self._lmdb = _NOBODY

    def holder(self) -> Holder | None:
        """Return the holder, or None."""
        if self.is_written_here:
            return _seen(self._borrower)
        if self.numbers[_OPENINGS] == self.alone:
            return None
        mutex = self._opened()
        if thread := mutex.holder() or self._lmdb_holder():
            return self._writer(thread)
        thread = self._lmdb[self._readers_word] & self._thread_bits
        return self._reader(thread) if thread else None

    @property
    def is_held(self) -> bool:
        """True if it is known that the loop cannot have it."""
        return self.is_lent or self.held_since is not None

    def held_s(self) -> float:
        """Return for how long it could not be had."""
        if self.is_lent:
            return time.monotonic() - self._lent_at
        return time.monotonic() - self.held_since if self.held_since is not None else 0.0

    def _wait(self, patience_s: float, is_hurried: bool) -> None:
        mutex = self._opened()
        began = time.monotonic()
        while True:
            if mutex.lock(MOMENT_S if is_hurried else min(_SLICE_S, patience_s)):
                if not self._lmdb_holder():
                    self.held_since = None
                    return
                mutex.unlock()
                time.sleep(MOMENT_S)
            if time.monotonic() - began >= patience_s or (is_hurried and self._is_stopped()):
                self.held_since = began
                self._seen = self._in_hand()
                raise self.held()

    def _is_stopped(self) -> bool:
        holder = self.holder()
        return holder is not None and holder.is_stopped

    def held(self) -> StoreHeld:
        """Return the error for a writer that cannot have it."""
        thread = self._opened().holder() or self._lmdb_holder()
        return StoreHeld(self._path, partial(_said, self._writer, thread, self._path, self.held_s()))

    def _writer(self, thread: int) -> Holder:
        """Return who has this lock, as far as it can be seen from here."""
        if self._guarded is None:
            return _seen(thread)
        process = self._guarded.process()
        return _seen(process) if process else Holder(thread, "?", ELSEWHERE)

    def _reader(self, thread: int) -> Holder:
        """Return who has LMDB's lock of readers. Where there are several pid namespaces, nobody knows whose number this
        is."""
        return _seen(thread) if self._guarded is None else Holder(thread, "?", ELSEWHERE)

    # -- a thread beside the loop

    def lend(self) -> None:
        """Lend it to another thread, which calls `borrow`, until that gives it back. Called by a loop. Raises StoreHeld
        if it is lent already."""
        self.check()
        if self.is_lent:  # by another loop of this process, on the same store
            raise self.held()
        self.is_lent = True
        self._borrower = 0
        self._lent_at = time.monotonic()

    def borrow(self) -> None:
        """Make this the borrowing thread."""
        self._borrower = get_native_id()

    def give_back(self) -> None:
        """Give it back: the thread has finished writing, or could not begin."""
        self.given_back_at = time.monotonic()
        self.is_lent = False

    @property
    def is_written_here(self) -> bool:
        """True if such a thread is writing: it does not stop by itself, and comes to its end."""
        is_writing = self.is_lent and 0 != self._borrower == self.writing_thread()
        return is_writing and (self._guarded is None or self._guarded.is_ours)

    def writing_thread(self) -> int:
        """Return the thread that is writing, in any process, by the kernel's number; 0: nobody, or it is not known."""
        self._opened()
        return self._lmdb_holder()

    @property
    def is_hurried(self) -> bool:
        """True if others wait for this thread, so that it must not wait."""
        return self.is_loop and not (self.is_lent and self._borrower == get_native_id())

    def _check_loan(self) -> None:
        """Raise StoreHeld if it is lent to another thread."""
        if self.is_hurried:
            raise self.held()

    def _in_hand(self) -> tuple[int, int]:
        """Return a pair that changes as soon as it is released."""
        assert self._mutex is not None
        return self._mutex.holder() or self._lmdb_holder(), self._lmdb[_LMDB_COMMIT_AT]

    def _lmdb_holder(self) -> int:
        """Return the holder of LMDB's own lock, which may have begun without this one."""
        return self._lmdb[self._lmdb_word] & self._thread_bits

    @property
    def is_to_be_opened(self) -> bool:
        """True if it is not open yet, or not as it must be between several pid namespaces."""
        return self._mutex is None or (self._guarded is None and self.numbers[_SEVERAL] != 0)

    def _opened(self) -> Mutex | FileMutex | GuardedMutex:
        if self.is_to_be_opened:
            from rlite_pubsub.storage.locks.mutex import IS_TO_BE_HAD, OWNER, THREAD, mapped  # as above

            if IS_TO_BE_HAD:  # LMDB's are such mutexes, too; else the holder is unknown
                self._lmdb = mapped(self._path.with_name(self._path.name + "-lock"), _BYTES)
            self._lmdb_word, self._readers_word = _LMDB_WRITER_AT + OWNER, _LMDB_READERS_AT + OWNER
            self._thread_bits = THREAD
            self._go_by(self._locks.mutex(self._path.name))
        assert self._mutex is not None
        return self._mutex

    def _go_by(self, mutex: Mutex | FileMutex | GuardedMutex) -> None:
        """Take this one from now on."""
        self._mutex = mutex
        if self.numbers[_SEVERAL]:
            from rlite_pubsub.storage.locks.guarded_mutex import GuardedMutex  # as above

            if isinstance(mutex, GuardedMutex):
                self._guarded = mutex
        self.release, self._take = mutex.unlock, mutex.take


def _not_open() -> int:
    return errno.EBUSY  # the thread that waits for it opens it


def _not_taken() -> int:
    raise AssertionError("the writer's lock is released by a thread that has not taken it")


def said(process: int, path: Path, seconds: float) -> str:
    """Return a text that describes the holder, after waiting for this long; 0: it cannot be seen."""
    return _said(_seen, process, path, seconds)


def _said(seen: Callable[[int], Holder], holder: int, path: Path, seconds: float) -> str:
    who = str(seen(holder)) if holder else "another process, which has ended just now or is in another container"
    return f"{who}, has been writing to {path} for {seconds:.1f} seconds"




def _seen(thread: int) -> Holder:
    """Return what the kernel says of a thread's process."""
    try:
        lines = Path(f"/proc/{thread}/status").read_text(errors="replace").splitlines()
    except OSError:
        return Holder(thread, "?", "? (unknown)")
    said = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    return Holder(int(said.get("Tgid", thread)), said.get("Name", "?"), said.get("State", "? (unknown)"))
