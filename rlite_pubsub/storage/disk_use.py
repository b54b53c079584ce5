"""What all files of a store take on the disk: both environments, the journal, and blocks that are kept beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

SHARE: Final = 0.01
"""Of the time that looking may take: a store may have thousands of files."""
_BLOCK_BYTES: Final = 512


class DiskUse:
    """The size of one folder, looked at again when that costs little."""

    def __init__(self, folder: Path, clock: Callable[[], float] = perf_counter) -> None:
        self._folder = folder
        self._clock = clock
        self._size_bytes = 0
        self._look_at = 0.0

    def size_bytes(self) -> int:
        """Return the size as of the last look."""
        began = self._clock()
        if began >= self._look_at:
            self._size_bytes = _size_of(os.fspath(self._folder))
            ended = self._clock()
            self._look_at = ended + (ended - began) / SHARE
        return self._size_bytes


def _size_of(folder: str) -> int:
    size = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        size += _size_of(entry.path)
                    else:
                        size += entry.stat(follow_symlinks=False).st_blocks * _BLOCK_BYTES
                except OSError:  # it is gone meanwhile
                    continue
    except OSError:
        return size
    return size
