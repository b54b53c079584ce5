"""The file of LMDB's that has what is home, and the fresh one that takes its place once most of it is free.

    data.mdb, then data.2.mdb, data.3.mdb, ...    there is one; more only while a process changes from one to the next

LMDB uses free pages again, and gives none back to the file system. So a checkpoint after which most pages are free
copies the others into a new file.

    LAW   A newer file has all that the one before has, and appears whole, under the lock of checkpoints. Nothing is
          written to the one before from then on.
    LAW   Whoever drops a window because it is home looks first whether there is a newer file: the window is home there.
    LAW   A file is opened only if it is there, unless the store is new: a name that has just gone is not made again.
"""

from __future__ import annotations

import errno
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

    def __init__(self, path: Path, map_bytes: int, *, is_new: bool = False) -> None:
        """Nobody else may open one of these files meanwhile. `is_new`: it is made if it is not there. Raises
        lmdb.Error; OSError, FileNotFoundError among them."""
        self.path = path
        self._map_bytes = map_bytes
        try:
            self.lmdb = lmdb.Environment(
                str(path),
                map_size=map_bytes,
                subdir=False,
                create=is_new,
                mode=permissions.OWNERS_FILE,
                readahead=False,
                max_readers=_MOST_READERS,
                max_spare_txns=0,  # a forked child that closes its copy would take a spare one's slot from us
            )
        except lmdb.Error as failure:
            if failure.code != errno.ENOENT:
                raise
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from failure
        try:
            self._number = ReaderNumber(self.lmdb, path)
            self.lmdb.reader_check()
            permissions.share(path, path.parent)
        except BaseException:
            self.lmdb.close()
            raise

    def next(self) -> Path | None:
        """Return the path of a newer file; None if there is none."""
        found = newest(self.path.parent)
        return found if _number_of(found.name) > _number_of(self.path.name) else None

    def following(self, path: Path) -> Home:
        """Open a newer one."""
        return Home(path, self._map_bytes)

    def is_mostly_free(self) -> bool:
        """Return whether a fresh file would be so much smaller that it is made by itself."""
        taken, live = self._sizes()
        return taken > _TIMES * live + _SPARE_BYTES

    def has_free(self) -> bool:
        """Return whether a fresh file would be smaller, for somebody who asks for one."""
        taken, live = self._sizes()
        return taken - live > max(taken // _WORTH_DIVISOR, _WORTH_BYTES)

    def _sizes(self) -> tuple[int, int]:
        """Return how many bytes its pages take, and how many of these are not free."""
        stat = self.lmdb.stat()
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
        return (self.lmdb.info()["last_pgno"] + 1) * stat["psize"], pages * stat["psize"]

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


def opened_home(folder: Path, map_bytes: int, *, is_new: bool) -> Home:
    """Open the newest one; another process may just be making one that is newer. Raises lmdb.Error; OSError."""
    while True:
        path = newest(folder)
        try:
            return Home(path, map_bytes, is_new=is_new)
        except FileNotFoundError:
            if path == newest(folder):
                raise


def remove_older(folder: Path) -> None:
    """Remove the names of all such files but the newest, and what a process that died has left unfinished."""
    kept = newest(folder).name
    for name in os.listdir(folder):
        if name == _UNFINISHED or (_number_of(name.removesuffix(_LOCK)) and name.removesuffix(_LOCK) != kept):
            with suppress(FileNotFoundError):
                (folder / name).unlink()
