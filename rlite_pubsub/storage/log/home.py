"""The file of LMDB's that has what is home, and the fresh one that takes its place once most of it is free.

    data.mdb, then data.2.mdb, data.3.mdb, ...    there is one; more only while a process changes from one to the next

LMDB uses free pages again, and gives none back to the file system. So a checkpoint after which most pages are free
copies the others into a new file.

    LAW   A newer file has all that the one before has, and appears whole, under the lock of checkpoints. Nothing is
          written to the one before from then on.
    LAW   Whoever drops a window because it is home looks first whether there is a newer file: the window is home there.
    LAW   Whoever has opened a file looks again whether it is the newest: LMDB makes one anew whose name has just gone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import lmdb

from rlite_pubsub import permissions
from rlite_pubsub.storage.locks.reader_number import ReaderNumber
from rlite_pubsub.storage.system import sync, sync_folder

FIRST_NAME: Final = "data.mdb"
_NAMES: Final = re.compile(r"data\.(\d+)\.mdb")
_UNFINISHED: Final = "data.mdb.new"
_LOCK: Final = "-lock"
_OPENING_NAME: Final = "data.opening"
_MOST_READERS: Final = 4096
_SPARE_BYTES: Final = 64 << 20
_TIMES: Final = 2
"""A file is as large as this many times what is in it, and the spare, before there is a fresh one."""
_WORTH_DIVISOR: Final = 10
_WORTH_BYTES: Final = 256 << 10
"""With more than such a part of it free, and so much, a fresh file is made for somebody who asks for one."""
_BLOCK_BYTES: Final = 512


def _number_of(name: str) -> int:
    found = _NAMES.fullmatch(name)
    return int(found[1]) if found is not None else int(name == FIRST_NAME)


def newest(folder: Path) -> Path:
    """Return the path of the file that has what is home; of the first one if there is none."""
    names = max(os.listdir(folder), key=_number_of, default="")
    return folder / (names if _number_of(names) else FIRST_NAME)


def is_there(folder: Path) -> bool:
    """Return whether a folder has the keys of a store. Never fails."""
    try:
        return any(map(_number_of, os.listdir(folder)))
    except OSError:
        return False


class Home:
    """One such file, open in this process."""

    def __init__(self, path: Path, map_bytes: int) -> None:
        """Open it, or make it: see `opened_home`. Nobody else may open one of these files meanwhile. Raises lmdb.Error;
        OSError."""
        self.path = path
        self._map_bytes = map_bytes
        self.lmdb = lmdb.Environment(
            str(path),
            map_size=map_bytes,
            subdir=False,
            mode=permissions.OWNERS_FILE,
            readahead=False,
            max_readers=_MOST_READERS,
            max_spare_txns=0,  # a forked child that closes its copy would take a spare one's slot from us
        )
        try:
            self._number = ReaderNumber(self.lmdb, path)
            self.lmdb.reader_check()
            permissions.share(path, path.parent)
        except BaseException:
            self.lmdb.close()
            raise

    def has_newer(self) -> bool:
        """Return whether there is a newer file."""
        return _number_of(newest(self.path.parent).name) > _number_of(self.path.name)

    def newer(self) -> Home:
        """Open the newest one. Raises lmdb.Error; OSError."""
        return opened_home(self.path.parent, self._map_bytes)

    def is_mostly_free(self) -> bool:
        """Return whether a fresh file would be so much smaller that it is made by itself."""
        return self.taken_bytes() > _TIMES * self._live_bytes() + _SPARE_BYTES

    def has_free(self) -> bool:
        """Return whether a fresh file would be smaller, for somebody who asks for one."""
        taken = self.taken_bytes()
        return taken - self._live_bytes() > max(taken // _WORTH_DIVISOR, _WORTH_BYTES)

    def taken_bytes(self) -> int:
        """Return how many bytes its pages take, the free ones among them."""
        return int((self.lmdb.info()["last_pgno"] + 1) * self.lmdb.stat()["psize"])

    def _live_bytes(self) -> int:
        stat = self.lmdb.stat()
        return int((stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]) * stat["psize"])

    def disk_bytes(self) -> int:
        """Return how much of the disk it takes."""
        try:
            return os.stat(self.path).st_blocks * _BLOCK_BYTES
        except FileNotFoundError:  # there is a newer one
            return 0

    def make_fresh(self) -> None:
        """Make the newer file, which has what is in this one and nothing else, and remove this one's name. The caller
        has the lock of checkpoints, and there is no newer one. Raises lmdb.Error, OSError; then there is none yet."""
        folder = self.path.parent
        unfinished = folder / _UNFINISHED
        unfinished.unlink(missing_ok=True)
        try:
            self.lmdb.copy(str(unfinished), compact=True)
            descriptor = permissions.opened(unfinished, os.O_RDWR)
            try:
                permissions.share(unfinished, folder)
                sync(descriptor)
            finally:
                os.close(descriptor)
            number = _number_of(self.path.name) + 1
            os.rename(unfinished, folder / f"data.{number}.mdb")
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        sync_folder(folder)
        remove_older(folder)

    def map_anew(self) -> None:
        """Map the file anew. No transaction of this process is open. Raises lmdb.Error."""
        self.lmdb.set_mapsize(self._map_bytes)

    def check_readers(self) -> None:
        """Clear LMDB's table of readers of dead ones."""
        self.lmdb.reader_check()

    def close(self) -> None:
        """Close it. No transaction of it is open."""
        self._number.let_go()
        self.lmdb.close()


def opened_home(folder: Path, map_bytes: int) -> Home:
    """Open the newest one, one process at a time; of a new store, make it. Another may just be making one that is
    newer. Raises lmdb.Error; OSError."""
    descriptor = permissions.opened(folder / _OPENING_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        while True:
            path = newest(folder)
            try:
                home = Home(path, map_bytes)
            except (FileNotFoundError, lmdb.Error) as failure:
                if isinstance(failure, lmdb.Error) and failure.code != errno.ENOENT:
                    raise
                continue  # its name went in the midst of it
            if not home.has_newer():
                return home
            home.close()
            remove_older(folder)  # it may have been made just now, where the other had removed its name
    finally:
        os.close(descriptor)


def remove_older(folder: Path) -> None:
    """Remove the names of all such files but the newest, and what a process that died has left unfinished."""
    kept = newest(folder).name
    for name in os.listdir(folder):
        if name == _UNFINISHED or (_number_of(name.removesuffix(_LOCK)) and name.removesuffix(_LOCK) != kept):
            with suppress(FileNotFoundError):
                (folder / name).unlink()
