"""Functions that Linux has and other systems (here macOS) lack, or have under another name."""

from __future__ import annotations

import fcntl
import os
from typing import Final

SYNCED_WRITE: Final[int] = getattr(os, "O_DSYNC", os.O_SYNC)
"""The flag for opening a file so that writes to it are on the disk when the call returns."""


def take_blocks(descriptor: int, at: int, size: int) -> None:
    """Reserve room on the disk for these bytes of a file, lengthening it if necessary. If the system cannot reserve,
    the file is only lengthened. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, at, size)
    elif os.fstat(descriptor).st_size < at + size:
        os.ftruncate(descriptor, at + size)


def sync(descriptor: int) -> None:
    """Bring what was written to a file to the disk. Raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    elif hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync leaves it in the disk's own cache
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)
