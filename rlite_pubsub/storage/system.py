"""Functions that Linux has and other systems (here macOS) lack, or have under another name."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
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


def pid_namespace() -> int:
    """Return the number of this process's pid namespace (its container's world of process ids); 0 if the system has
    none."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def holder_of(file: int | Path) -> int:
    """Return the process that has locked this file by flock, as it is called here; 0 if none has, if it is in another
    pid namespace, or if the kernel does not say."""
    try:
        inode = os.stat(file).st_ino
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return 0
    for line in lines:  # 1: FLOCK  ADVISORY  WRITE 4711 fe:00:2263689 0 EOF
        words = line.split()
        if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
            return int(words[4])
    return 0


def sync(descriptor: int) -> None:
    """Bring what was written to a file to the disk. Raises OSError."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(descriptor)
    elif hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync leaves it in the disk's own cache
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Bring the names of files to the disk, if the file system can. Raises OSError if the folder can't be opened."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
