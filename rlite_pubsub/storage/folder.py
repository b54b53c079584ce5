"""The store's folder: its files, and the two locks that make its opening safe.

    live.mdb, live.mdb-lock, data.mdb, data.mdb-lock     the two environments
    subscribers/                                         <id>.lock and <id>.fifo
    store.lock                                           held by one process at a time while it opens the store; its
                                                         time of modification is when the last one began. It holds the
                                                         id of the machine's start in which live.mdb was made

Processes that have the store open share a lock on the folder itself; one that gets that lock alone, with store.lock,
knows that nobody else has the store open. The open folder also pins its inode, by which this process recognises the
store.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlite_pubsub import permissions
from rlite_pubsub.storage.errors import NotAStoreFolder, StoreBusy, StoreUnwritable

_PATIENCE_S = 10.0
"""The patience for one opener; each one in the queue waits for those before it."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.001, 0.016
_CONTENTS = ("subscribers", "live.mdb")
_DATA, _LOGS = "data.mdb", "data.log.*"
_DOOR = "store.lock"
_open_folders: set[Folder] = set()


class Folder:
    """An open store folder. If it is missing, it is created for its owner only; with `for_group`, for its group,
    too."""

    def __init__(self, path: Path, *, for_group: bool = False) -> None:
        self.path = path
        self.subscribers = path / "subscribers"
        try:
            path.mkdir(mode=permissions.OWNERS_FOLDER, parents=True, exist_ok=True)
            if for_group:
                permissions.give_to_group(path)
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileExistsError, NotADirectoryError) as error:
            raise NotAStoreFolder(path) from error
        except OSError as error:
            raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
        status = os.fstat(self._descriptor)
        self.identity = (status.st_dev, status.st_ino)
        self._contents: dict[Path, tuple[int, int]] = {}
        _open_folders.add(self)

    @contextmanager
    def opening(self) -> Iterator[bool]:
        """Let in one process at a time; yield True if no other has the store open. It is open from now on."""
        try:
            permissions.make_folder(self.subscribers)
            door = permissions.opened(self.path / _DOOR, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        except FileExistsError as error:
            raise NotAStoreFolder(self.subscribers) from error
        except OSError as error:
            raise StoreUnwritable(self.path, os.strerror(error.errno or 0)) from error
        try:
            self._wait_at(door)
            is_alone = _locked(self._descriptor, fcntl.LOCK_EX)
            yield is_alone
            if not _locked(self._descriptor, fcntl.LOCK_SH):  # only openers take it alone, and they are not in here
                raise StoreBusy(self.path, "its folder is locked by another program")
            contents = [self.path, *map(self.path.__truediv__, _CONTENTS)]
            if next(self.path.glob(_LOGS), None) is None:  # with a log, a fresh file may take its place
                contents.append(self.path / _DATA)
            self._contents = {path: _identity(path) for path in contents}
        finally:
            os.close(door)

    @contextmanager
    def looking_for_others(self) -> Iterator[bool]:
        """Yield True if no other process has the store open, and keep others from opening it meanwhile. Never waits.
        Raises OSError; StoreBusy if another program has locked the folder."""
        door = os.open(self.path / _DOOR, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not _locked(door, fcntl.LOCK_EX):
                yield False
                return
            try:
                yield _locked(self._descriptor, fcntl.LOCK_EX)
            finally:
                if not _locked(self._descriptor, fcntl.LOCK_SH):  # refused, it would be lost: others ask for it, too
                    raise StoreBusy(self.path, "its folder is locked by another program")
        finally:
            os.close(door)

    def live_is_of(self, boot: bytes) -> bool:
        """Return whether live.mdb was made since the machine's last start. If the machine has no boot id that cannot be
        known, and it is taken to be."""
        return not boot or (self.path / _DOOR).read_bytes() == boot

    def note_boot(self, boot: bytes) -> None:
        """Note that live.mdb belongs to this start of the machine."""
        (self.path / _DOOR).write_bytes(boot)

    def is_in_place(self) -> bool:
        """Return whether a process that opens the path now would open the same files."""
        try:
            return all(_identity(path) == identity for path, identity in self._contents.items())
        except OSError:
            return False

    def _wait_at(self, door: int) -> None:
        """Wait for the lock of opening processes. Many that try all the time would slow down the one that holds it."""
        began_ns, pause_s, deadline = -1, _FIRST_PAUSE_S, 0.0
        while not _locked(door, fcntl.LOCK_EX):
            before_ns, began_ns = began_ns, os.fstat(door).st_mtime_ns
            if began_ns != before_ns:
                deadline = time.monotonic() + _PATIENCE_S
            elif time.monotonic() > deadline:
                raise StoreBusy(self.path, f"another process has been opening it for {_PATIENCE_S:.0f} seconds")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        os.utime(door)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            _open_folders.discard(self)


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _locked(descriptor: int, how: int) -> bool:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN):
            return False
        raise
    return True


def _close_in_child() -> None:
    for folder in list(_open_folders):
        folder.close()


os.register_at_fork(after_in_child=_close_in_child)
