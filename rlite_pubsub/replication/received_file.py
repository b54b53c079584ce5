"""A master's file on its way in: on the disk, in a file without a name, until all of it has come and is proved whole.

What the store has stays as it is meanwhile, and so does the disk: a file for which there is no room is refused when its
size is announced, or else when it has left the store no more than `_RESERVE_BYTES`.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

_BUFFERED = 1 << 20
_LOOK_BYTES = 16 << 20
_RESERVE_BYTES = 64 << 20


class ReceivedFile:
    """One file: `read` it as it comes, and once more from `again`."""

    def __init__(self, folder: Path, read: Callable[[int], bytes], announced: int | None) -> None:
        """`announced`: its size, if the master has said so. Raises OSError where there is no room."""
        self._read = read
        self._folder = folder
        self._unlooked = 0
        self._check_room(announced or 0)
        self._file = tempfile.TemporaryFile(dir=folder, buffering=_BUFFERED)  # noqa: SIM115

    def read(self, size: int) -> bytes:
        """The next bytes; fewer only where the master has ended. Raises OSError where there is no more room."""
        data = self._read(size)
        self._unlooked += len(data)
        if self._unlooked >= _LOOK_BYTES:
            self._unlooked = 0
            self._check_room(len(data))
        self._file.write(data)
        return data

    def again(self) -> IO[bytes]:
        """The file, from its begin."""
        self._file.seek(0)
        return self._file

    def close(self) -> None:
        """Forget it."""
        self._file.close()

    def _check_room(self, size: int) -> None:
        disk = os.statvfs(self._folder)
        if size + _RESERVE_BYTES > disk.f_bavail * disk.f_frsize:
            raise OSError(errno.ENOSPC, "No room on the disk for the master's file")
