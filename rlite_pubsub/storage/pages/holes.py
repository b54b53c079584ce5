"""Giving free pages back to the file system: holes are punched into the file where it is, while it is in use.

LMDB never makes its file smaller, and a smaller copy would be another file: a process that has the store open, and may
be stopped, would have to switch to it at the same moment, and what it wrote to the old one would be lost. A hole needs
nobody's consent. Its pages read as zeros, and nobody reads them: LMDB begins to use a free page by writing all of it.
After a power cut a hole is there or not, and either is right.

    LAW    Only the holder of the writer's lock punches holes, so that nobody takes a page into use meanwhile, and only
           where pages were freed by a commit that is no later than the oldest reader's, and no later than the
           checkpoint in `data.safe`, whether somebody has it pinned or not.

The file's length stays as it is: `du` shows what it takes of the disk, `ls -l` does not.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.pages import free_list
from rlite_pubsub.storage.pages.meta import Meta

KEPT_PAGES = 256
"""Of the free ones this many, the next to be used, keep their place on the disk: what removes needs pages, too, when
the
disk is full."""
_PAGES_AT_ONCE = 1024
_KEEP_SIZE, _PUNCH_HOLE = 0x01, 0x02

_libc = ctypes.CDLL(None, use_errno=True)
_fallocate_of_libc = getattr(_libc, "fallocate", None)
if _fallocate_of_libc is not None:
    _fallocate_of_libc.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


class Reached(NamedTuple):
    """How far a pass through the list of free pages has come."""

    transaction: int
    page: int
    """Of the record of this transaction."""


BEGINNING = Reached(0, 0)


def punch(
    descriptor: int, meta: Meta, oldest: int, place: Reached, is_time: Callable[[], bool]
) -> tuple[Reached | None, int]:
    """Punch holes from a place in the list on, until it `is_time` to let others write. Nobody reads a commit before
    `oldest`. Returns where to go on, None at the end; and how many pages were given back. Raises OSError."""
    given_back = 0
    going_on: Reached | None = place
    kept = KEPT_PAGES if place == BEGINNING else 0
    while going_on is not None:
        pages, going_on = _taken(descriptor, meta, oldest, going_on, kept or _PAGES_AT_ONCE)
        if not kept:
            for first, behind in _runs(pages):
                given_back += _punched(descriptor, first * meta.page_bytes, behind * meta.page_bytes) // meta.page_bytes
        kept = 0
        if is_time():
            break
    return going_on, given_back


def reserve(descriptor: int, at: int, size: int) -> None:
    """Reserve a place on the disk for what will be written after the end of a file. Raises OSError."""
    if _fallocate_of_libc is not None:  # otherwise a full disk shows when it is written to
        _fallocate(descriptor, _KEEP_SIZE, at, size)


def _taken(descriptor: int, meta: Meta, oldest: int, place: Reached, most: int) -> tuple[list[int], Reached | None]:
    """Return this many pages of the list, at most, and where it goes on."""
    taken: list[int] = []
    for record in free_list.records(descriptor, meta, place.transaction):
        if record.transaction > oldest:
            return taken, None
        first = place.page if record.transaction == place.transaction else 0
        pages = record.pages(first, most - len(taken))
        taken += pages
        if first + len(pages) < record.size:
            return taken, Reached(record.transaction, first + len(pages))
    return taken, None


def _runs(pages: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of adjacent pages: the first of each, and the one after it."""
    start = behind = -1
    for number in sorted(pages):
        if number != behind:
            if start >= 0:
                yield start, behind
            start = number
        behind = number + 1
    if start >= 0:
        yield start, behind


def _punched(descriptor: int, at: int, end: int) -> int:
    """Punch a hole; return how many bytes were given back: none if there is a hole already."""
    try:
        if os.lseek(descriptor, at, os.SEEK_DATA) >= end:
            return 0
    except OSError as error:
        if error.errno == errno.ENXIO:
            return 0
        raise
    _fallocate(descriptor, _PUNCH_HOLE | _KEEP_SIZE, at, end - at)
    failpoint("hole-punched")
    return end - at


def _fallocate(descriptor: int, mode: int, at: int, size: int) -> None:
    if _fallocate_of_libc is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    if _fallocate_of_libc(descriptor, mode, at, size) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
