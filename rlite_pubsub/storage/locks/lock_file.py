"""LMDB's lock file, a table of readers in shared memory; and locks on our files that nobody waits too long for.

LMDB gives the file its length but no blocks. Writing to it on a full disk is then a SIGBUS, which ends the process;
with its blocks taken beforehand, the full disk is an error that can be reported.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from functools import partial
from pathlib import Path

from rlite_pubsub import permissions
from rlite_pubsub.storage.errors import StoreHeld
from rlite_pubsub.storage.locks.writer_lock import said
from rlite_pubsub.storage.system import holder_of, take_blocks

_READER_BYTES = 64
_HEADER_BYTES = 192
"""In LMDB 0.9 on 64 bits. Were they smaller elsewhere, a few of the last slots would have no blocks, or there would be
a few slots more."""


def reserve(environment: Path, readers: int) -> None:
    """Take the blocks for this many readers, before LMDB opens the file. Raises OSError."""
    path = environment.with_name(environment.name + "-lock")
    descriptor = permissions.opened(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
    try:
        take_blocks(descriptor, 0, _HEADER_BYTES + (readers - 1) * _READER_BYTES)
    finally:
        os.close(descriptor)


_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0002, 0.005


def take(descriptor: int, path: Path, patience_s: float) -> None:
    """Lock an open file exclusively until it is closed. Raises StoreHeld, which names the holder, and OSError."""
    began = time.monotonic()
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN):
                raise
        else:
            return
        waited_s = time.monotonic() - began
        if waited_s >= patience_s:
            raise StoreHeld(path, partial(said, holder_of(descriptor), path, waited_s))
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
