"""LMDB's lock file: a table of readers in shared memory.

LMDB gives the file its length and no blocks. To write to it on a full disk is then a SIGBUS, and that is the end of the
process; with its blocks taken beforehand, the full disk is an error that can be told.
"""

from __future__ import annotations

import os
from pathlib import Path

_READER_BYTES = 64
_HEADER_BYTES = 192
"""In LMDB 0.9 on 64 bits. Were they smaller elsewhere, a few of the last slots would have no blocks, or there would be
a few slots more."""


def reserve(environment: Path, readers: int) -> None:
    """Take the blocks for so many readers, before LMDB opens the file. Raises OSError."""
    path = environment.with_name(environment.name + "-lock")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, _HEADER_BYTES + (readers - 1) * _READER_BYTES)
    finally:
        os.close(descriptor)
