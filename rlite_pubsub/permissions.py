"""Who besides its owner may open the contents of a store's folder: nobody or, if the folder says so, its group.

A store is its owner's alone: its folder has mode 0700, its files 0600. A folder that its group may write to and whose
setgid bit is set (`chmod 2770`, and `chgrp`) is a group's store: whatever is made in it can be read and written by the
group, whichever user of it makes it and whatever that one's umask is. Nothing but the folder's mode decides this, so
servers, programs and tools agree without being told.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

OWNERS_FILE, OWNERS_FOLDER = 0o600, 0o700
GROUPS_FILE, GROUPS_FOLDER = 0o660, 0o2770
_GROUP_WRITES = 0o020


def is_groups(folder: Path | str) -> bool:
    """Return whether this folder is a group's. Raises OSError."""
    mode = os.stat(folder).st_mode
    return bool(mode & stat.S_ISGID and mode & _GROUP_WRITES)


def is_open(folder: Path | str) -> bool:
    """Return whether others than the owner and the group may look into this folder, or the group although it is not the
    group's. Raises OSError."""
    mode = os.stat(folder).st_mode
    return bool(mode & 0o007 or (mode & 0o070 and not is_groups(folder)))


def opened(path: Path | str, flags: int) -> int:
    """Return a descriptor of this file, which is created if the flags say so. Raises OSError."""
    if flags & os.O_CREAT and not flags & os.O_EXCL:
        try:
            return os.open(path, flags & ~os.O_CREAT | os.O_CLOEXEC)
        except FileNotFoundError:
            pass
    descriptor = os.open(path, flags | os.O_CLOEXEC, OWNERS_FILE)
    if flags & os.O_CREAT:
        try:
            share(descriptor, os.path.dirname(path))
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor


def opened_to_read(path: Path | str) -> int:
    """Return a descriptor of this file, which is a regular one, or a link to one. Raises OSError, also for all else:
    opening a FIFO would wait for somebody, and a device may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    return descriptor


def share(file: int | Path, folder: Path | str) -> None:
    """Give what this process has just made in this folder to the group, too, if the folder is a group's. Raises
    OSError."""
    status = os.stat(file)
    if status.st_mode & _GROUP_WRITES or status.st_uid != os.geteuid() or not is_groups(folder):
        return
    os.chmod(file, GROUPS_FOLDER if stat.S_ISDIR(status.st_mode) else GROUPS_FILE)


def give_to_group(folder: Path) -> None:
    """Make this folder, and what of this user's is in it, its group's. Raises OSError."""
    if not is_groups(folder):
        os.chmod(folder, GROUPS_FOLDER)
        for path in folder.rglob("*"):
            share(path, folder)


def make_folder(path: Path) -> None:
    """A folder in one that is there, if it is not there yet. Raises OSError."""
    path.mkdir(mode=OWNERS_FOLDER, exist_ok=True)
    share(path, path.parent)
