"""A subscriber's FIFO: rung after a commit, says only "look".

Law 3: CLEAR the bell -> take the mailbox until it is empty -> wait, bounded -> again. The doorbell may lie in either
direction: a ring may find an empty mailbox, and a mailbox may fill with no ring (a FIFO deleted by hand). Hence every
wait is bounded, and what a ring returns is a hint, never proof of life or death.

The owner opens its FIFO for reading and writing, so that it never sees the end of the file. A full FIFO has been rung.
Ringers rely on SIGPIPE being ignored, as Python has it from the start.
"""

from __future__ import annotations

import enum
import errno
import os
import select
import stat
import threading
from collections.abc import Collection, Iterable
from pathlib import Path

from rlite_pubsub import permissions

_MOST_AT_ONCE = 65536
"""The capacity of a FIFO on Linux: one read takes all there is."""
_GONE = frozenset({errno.ENXIO, errno.ENOENT, errno.EPIPE})
_owned: set[Doorbell] = set()
"""The bells of this process: a forked child closes its copies, or it would steal its parent's rings."""


class Ring(enum.Enum):
    """The outcomes of a ring."""

    RUNG = "rung"
    FULL = "full"
    """It is rung already: the FIFO holds no more."""
    GONE = "gone"
    """Nobody has it open: a hint that its owner may have died."""
    UNKNOWN = "unknown"


class NotAFifo(OSError):
    """Something other than a FIFO stands where the doorbell should be."""


def doorbell_path(folder: Path, subscriber: int) -> Path:
    return folder / f"{subscriber:016x}.fifo"


class Doorbell:
    """The owner's end."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        _owned.add(self)

    @classmethod
    def hang(cls, folder: Path, subscriber: int) -> Doorbell:
        """Make the FIFO and open it. Raises OSError if the folder does not let us."""
        path = doorbell_path(folder, subscriber)
        try:
            os.mkfifo(path, permissions.OWNERS_FILE)
            permissions.share(path, folder)
        except FileExistsError:
            pass  # ours from before, or not a FIFO at all: that is looked at below
        descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise NotAFifo(errno.EEXIST, "not a FIFO", str(path))
        return cls(path, descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def clear(self) -> None:
        """Forget every ring up to now; one that comes later stays."""
        while True:
            try:
                if len(os.read(self._descriptor, _MOST_AT_ONCE)) < _MOST_AT_ONCE:
                    return  # a short read has emptied it
            except BlockingIOError:
                return

    def wait(self, timeout_s: float) -> bool:
        """Wait; return True if it was rung, False on a timeout."""
        return bool(self._poll.poll(max(0.0, timeout_s) * 1000))

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _owned.discard(self)

    def remove(self) -> None:
        """Take it down: ringing it from now on answers GONE."""
        if self._descriptor >= 0:
            self.path.unlink(missing_ok=True)
        self.close()


class Ringer:
    """Rings the bells of one folder, and keeps those that it opened last open. Safe to share between threads."""

    def __init__(self, folder: Path, capacity: int = 256) -> None:
        self._folder = folder
        self._capacity = capacity
        self._open: dict[int, int] = {}  # in the order in which they were opened
        self._poll = select.poll()  # tells of those that nobody hears, and of nothing else
        self._lock = threading.Lock()

    def ring(self, subscriber: int) -> Ring:
        with self._lock:
            descriptor = self._open.get(subscriber)
            if descriptor is not None:
                result = _strike(descriptor)
                if result is Ring.RUNG or result is Ring.FULL:
                    return result
                # Its owner has died, or has hung a new FIFO at the same path.
                self._drop(subscriber)
            return self._ring_anew(subscriber)

    def open(self, subscribers: Iterable[int]) -> list[int]:
        """Open the bells that are not open, for `unheard` to look at; those that nobody hears."""
        with self._lock:
            found = []
            for subscriber in subscribers:
                if subscriber not in self._open:
                    opened = _open_to_ring(doorbell_path(self._folder, subscriber))
                    if not isinstance(opened, Ring):
                        self._keep(subscriber, opened)
                    elif opened is Ring.GONE:
                        found.append(subscriber)
            return found

    def unheard(self) -> list[int]:
        """Return whose open bells nobody hears any more, each once: a hint, as GONE is. It looks once at all of them;
        none is rung, and those that it returns are let go."""
        with self._lock:
            found = {descriptor for descriptor, _ in self._poll.poll(0)}
            if not found:
                return []
            unheard = [one for one, descriptor in self._open.items() if descriptor in found]
            for subscriber in unheard:
                self._drop(subscriber)
            return unheard

    def keep_only(self, subscribers: Collection[int]) -> None:
        """Let go of the bells of all others: they have left."""
        with self._lock:
            for subscriber in [one for one in self._open if one not in subscribers]:
                self._drop(subscriber)

    @property
    def open_bells(self) -> int:
        """How many it keeps open."""
        return len(self._open)

    def close(self) -> None:
        with self._lock:
            for subscriber in list(self._open):
                self._drop(subscriber)

    def _ring_anew(self, subscriber: int) -> Ring:
        opened = _open_to_ring(doorbell_path(self._folder, subscriber))
        if isinstance(opened, Ring):
            return opened
        result = _strike(opened)
        if result is Ring.GONE or result is Ring.UNKNOWN:
            os.close(opened)
            return result
        self._keep(subscriber, opened)
        return result

    def _keep(self, subscriber: int, descriptor: int) -> None:
        self._open[subscriber] = descriptor
        self._poll.register(descriptor, 0)
        if len(self._open) > self._capacity:
            self._drop(next(iter(self._open)))

    def _drop(self, subscriber: int) -> None:
        descriptor = self._open.pop(subscriber)
        self._poll.unregister(descriptor)
        os.close(descriptor)


def ring(folder: Path, subscriber: int) -> Ring:
    """Ring once, and keep nothing open."""
    opened = _open_to_ring(doorbell_path(folder, subscriber))
    if isinstance(opened, Ring):
        return opened
    try:
        return _strike(opened)
    finally:
        os.close(opened)


def take_down(folder: Path, subscriber: int) -> bool:
    """Remove the FIFO of one that is dead. False if there was none. Raises OSError."""
    try:
        doorbell_path(folder, subscriber).unlink()
    except FileNotFoundError:
        return False
    return True


def has_listener(folder: Path, subscriber: int) -> bool:
    """Return whether somebody has the FIFO open: a sign of life that needs no process ID."""
    opened = _open_to_ring(doorbell_path(folder, subscriber))
    if isinstance(opened, Ring):
        return opened is Ring.UNKNOWN
    os.close(opened)
    return True


def _open_to_ring(path: Path) -> int | Ring:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        return Ring.GONE if error.errno in _GONE else Ring.UNKNOWN
    if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return Ring.UNKNOWN


def _strike(descriptor: int) -> Ring:
    try:
        os.write(descriptor, b"!")
    except BlockingIOError:
        return Ring.FULL
    except OSError as error:
        return Ring.GONE if error.errno in _GONE else Ring.UNKNOWN
    return Ring.RUNG


def _close_in_child() -> None:
    for bell in list(_owned):
        bell.close()


os.register_at_fork(after_in_child=_close_in_child)
