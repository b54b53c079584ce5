"""A subscriber's lock file, held with flock while it lives.

Law 4, its first half: a lock acquired with LOCK_EX|LOCK_NB is the only proof of death, and it is kept while reaping,
so that two reapers cannot both proceed. Whatever else happens (no permission, an odd file, a file system without
flock) says nothing: doubt is not death.

flock belongs to the open file, which the kernel closes when the process ends, however it ends. A forked child shares
its parent's open files and would keep the parent alive beyond its death: it closes them before it runs anything else.
"""

from __future__ import annotations

import enum
import fcntl
import os
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rlite_pubsub import permissions

_OPEN_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_held: dict[int, Liveness] = {}
"""Every lock of this process, by descriptor: what a forked child has to close, and who is surely alive."""


class Verdict(enum.Enum):
    """The outcomes of a probe."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class AlreadyHeld(Exception):
    """The lock file of this subscriber is locked: by the subscriber itself, or by the process that is reaping it."""


@dataclass(frozen=True)
class Probe:
    """A verdict. With DEAD comes the lock, which the caller must release or remove."""

    verdict: Verdict
    lock: Liveness | None = None


def lock_path(folder: Path, subscriber: int) -> Path:
    return folder / f"{subscriber:016x}.lock"


class Liveness:
    """One lock, held until `release` or `remove`, or until this process ends."""

    def __init__(self, folder: Path, subscriber: int, descriptor: int, created: bool) -> None:
        self.path = lock_path(folder, subscriber)
        self.subscriber = subscriber
        self.created = created
        """The file was not there before: nobody can have let go of it."""
        self._descriptor = descriptor
        _held[descriptor] = self

    @classmethod
    def hold(cls, folder: Path, subscriber: int) -> Liveness:
        """Create and lock the file. Raises AlreadyHeld if another has it, OSError if the folder does not let us."""
        while True:
            descriptor, created = _open(lock_path(folder, subscriber), create=True)
            if not _lock(descriptor):
                os.close(descriptor)
                raise AlreadyHeld(f"{lock_path(folder, subscriber)} is locked by another process or subscriber")
            if _is_still_at(descriptor, lock_path(folder, subscriber)):
                return cls(folder, subscriber, descriptor, created)
            os.close(descriptor)  # a reaper removed the file between our open and our lock

    @classmethod
    def hold_new(cls, folder: Path, bits: int) -> Liveness:
        """Hold one of a random number. Raises OSError if the folder does not let us."""
        while True:
            try:
                return cls.hold(folder, secrets.randbits(bits))
            except AlreadyHeld:
                continue  # taken, or somebody looks at it just now: a look takes it for a moment

    @property
    def is_held(self) -> bool:
        return self._descriptor >= 0

    def release(self) -> None:
        """Let go, and leave the file: from now on a probe says DEAD."""
        if self._descriptor >= 0:
            del _held[self._descriptor]
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Remove the file, then let go: a process that opened it before will see that it is no longer the one at its
        path."""
        if self._descriptor >= 0 and _is_still_at(self._descriptor, self.path):
            self.path.unlink(missing_ok=True)
        self.release()

    def __enter__(self) -> Liveness:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.release()


def probe(folder: Path, subscriber: int, *, create: bool = False) -> Probe:
    """Does this subscriber live? A missing file is UNKNOWN, unless `create` asks to make it and lock it: whoever
    does so must look for other signs of life (`Liveness.created`), as the file may have been deleted by hand.
    """
    path = lock_path(folder, subscriber)
    if any(lock.path == path for lock in list(_held.values())):
        return Probe(Verdict.ALIVE)
    try:
        descriptor, created = _open(path, create=create)
    except OSError:
        return Probe(Verdict.UNKNOWN)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            verdict = Verdict.UNKNOWN
        elif not _lock(descriptor):
            verdict = Verdict.ALIVE
        elif not _is_still_at(descriptor, path):
            verdict = Verdict.UNKNOWN
        else:
            return Probe(Verdict.DEAD, Liveness(folder, subscriber, descriptor, created))
    except OSError:
        verdict = Verdict.UNKNOWN
    os.close(descriptor)
    return Probe(verdict)


def _open(path: Path, *, create: bool) -> tuple[int, bool]:
    """The descriptor, and whether this call made the file."""
    while True:
        try:
            return os.open(path, _OPEN_FLAGS), False
        except FileNotFoundError:
            if not create:
                raise
        try:
            return permissions.opened(path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL), True
        except FileExistsError:
            continue  # another was quicker: open what it made


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still_at(descriptor: int, path: Path) -> bool:
    """A lock on a file that was unlinked or replaced after it was opened locks nothing that others can see."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    here = os.fstat(descriptor)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _close_in_child() -> None:
    for lock in list(_held.values()):
        lock.release()


os.register_at_fork(after_in_child=_close_in_child)
