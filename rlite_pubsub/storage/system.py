"""What Linux has and other systems (here macOS) lack, or have under another name."""

from __future__ import annotations

import fcntl
import os
from typing import Final

SYNCED_WRITE: Final[int] = getattr(os, "O_DSYNC", os.O_SYNC)
"""To open a file with: what is written to it is on the disk when the call returns."""


def take_blocks(descriptor: int, at: int, size: int) -> None:
    """Have room on the disk for these bytes of a file, which is longer then if necessary. Where the system can't say
    that, the file is only made so long. Raises OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, at, size)
    elif os.fstat(descriptor).st_size < at + size:
        os.ftruncate(descriptor, at + size)


def sync(descriptor: int) -> None:
    """What was written to a file is on the disk when this returns. Raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    elif hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync leaves it in the disk's own memory
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)
