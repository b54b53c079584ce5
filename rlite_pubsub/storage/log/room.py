"""How much may be added to a store whose truth is the log: up to its quota, and as long as the disk takes it.

What there is, is what LMDB's pages take and what the windows will add to that (`grown`), which is an estimate until
they are home. So before an addition is refused, they are brought home.

Removals are rows of the log, too, and take room. So the disk is taken ahead of time: the active segment is always a
little longer than what is in it, LMDB's file is, and a spare file makes way for the next window. Once no more is to be
had, additions are refused, and what was taken ahead is for what removes.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlite_pubsub import permissions
from rlite_pubsub.storage.errors import DiskFull, StoreError, StoreFull
from rlite_pubsub.storage.system import take_blocks
from rlite_pubsub.storage.window.plain import taken_by

if TYPE_CHECKING:
    from rlite_pubsub.storage.log.log import Log
    from rlite_pubsub.storage.log.transaction import LogTransaction

log: Final = logging.getLogger("rlite_pubsub")

UNLIMITED_BYTES: Final = 1 << 40
SPARE_NAME: Final = "data.spare"
_TOLERANCE_DIVISOR: Final = 32
_SMALLEST_TOLERANCE_BYTES: Final = 256 << 10
"""How far a turn may exceed the quota: a removal must not be refused together with additions in the same turn. An
addition in the next turn is refused beforehand."""
_UNSURE_DIVISOR: Final = 16
_LEAST_UNSURE_BYTES: Final = 64 << 10
"""With more in the windows than this, or than such a part of the quota, they are brought home before a refusal."""
_LEAST_FREE_BYTES: Final = 2 << 20
"""A disk that was full and has so much is not."""


class LogRoom:
    """How much room there is, as one process sees it."""

    def __init__(self, path: Path, quota_bytes: int, the_log: Log, live_bytes: Callable[[], int]) -> None:
        self._path = path
        self._log = the_log
        self._live_bytes = live_bytes
        self.quota_bytes = quota_bytes
        self._tolerance_bytes = max(quota_bytes // _TOLERANCE_DIVISOR, _SMALLEST_TOLERANCE_BYTES)
        self.most_tolerated_bytes = self._tolerance_bytes * 2
        """How far a transaction may exceed the quota whose additions are small, and not counted beforehand."""
        self.is_short = False
        self.full: StoreError | None = None
        self._on_full: Callable[[], None] = _nobody
        if quota_bytes < UNLIMITED_BYTES:
            self.count()

    def call_when_full(self, changed: Callable[[], None]) -> None:
        """Call `changed` when the store becomes full, or has room again: it is called in the middle of work."""
        self._on_full = changed

    def count(self) -> None:
        """Count what there is exactly from now on, which costs each commit a little: somebody limits it."""
        self._log.counts = True

    def look(self) -> None:
        """Look whether a disk that was full has room again, and whether one that was not is full now."""
        if isinstance(self.full, DiskFull):
            self._look_at_disk()
        elif self.full is None and not self._log.has_ahead():
            self.say(DiskFull(self._path, os.strerror(errno.ENOSPC)))

    def lack(self) -> StoreError | None:
        """Return why nothing can be added now; None if something can."""
        if isinstance(self.full, DiskFull):
            self._look_at_disk()
        return self.full

    # -- what a transaction may add

    def check(self, txn: Any, bytes_before: int | None) -> None:
        """Raise what the commit of a turn would raise if the quota is exceeded."""
        self.check_added(txn, self._tolerance_bytes)

    def check_turn(self, txn: LogTransaction) -> None:
        """Like `check`, and say whether the store is full."""
        if not txn.own:
            return
        if not self._log.has_ahead() and self.grown_by(txn) > 0:
            full = DiskFull(self._path, os.strerror(errno.ENOSPC))
            self.say(full)
            raise full
        if self.quota_bytes >= UNLIMITED_BYTES:
            return
        is_over = self._live_bytes() + txn.size > self.quota_bytes
        if is_over or isinstance(self.full, StoreFull):
            is_over = is_over and self._is_over(txn, 0)
            self.say(self._over_quota() if is_over else None)
            if is_over:
                self.check_added(txn, self.most_tolerated_bytes)

    def check_added(self, txn: LogTransaction, tolerated_bytes: int) -> None:
        """Raise StoreFull if the transaction adds more than there is room for."""
        if self.quota_bytes >= UNLIMITED_BYTES or not txn.own:
            return
        if self._live_bytes() + txn.size > self.quota_bytes + tolerated_bytes and self._is_over(txn, tolerated_bytes):
            if self.grown_by(txn) > 0:
                raise self._over_quota()

    def _is_over(self, txn: LogTransaction, tolerated_bytes: int) -> bool:
        """Return whether it is more than is allowed, for certain."""
        allowed_bytes = self.quota_bytes + tolerated_bytes
        unsure_bytes = max(self.quota_bytes // _UNSURE_DIVISOR, _LEAST_UNSURE_BYTES)
        if self._live_bytes() + self.grown_by(txn) <= allowed_bytes:
            return False
        if self._log.unhomed_bytes() <= unsure_bytes:
            return True
        self._log.bring_all_home()
        return self._live_bytes() + self.grown_by(txn) > allowed_bytes

    def grown_by(self, txn: LogTransaction) -> int:
        """Return how much more the store takes once this is committed."""
        grown = 0
        for key, value in txn.own.items():
            before = txn.committed(key)
            if value is not None:
                grown += taken_by(len(key), len(value))
            if before is not None:
                grown -= taken_by(len(key), len(before))
        return grown

    def is_free(self, txn: Any) -> bool:
        """Return whether an addition may be tried after the store was `full`."""
        if isinstance(self.full, StoreFull):
            if self._live_bytes() + self.grown_by(txn) <= self.quota_bytes:
                self.say(None)
        elif self.full is not None:
            self._look_at_disk()
        return self.full is None

    def _over_quota(self) -> StoreFull:
        return StoreFull(self._path, self.quota_bytes)

    def say(self, full: StoreError | None) -> None:
        """Note that it is full, or has room again."""
        if self.full is not full:
            is_news = (self.full is None) != (full is None)
            self.full = full
            if is_news:
                self._on_full()

    # -- the disk

    def _look_at_disk(self) -> None:
        with suppress(OSError):
            disk = os.statvfs(self._path.parent)
            if disk.f_bavail * disk.f_frsize >= _LEAST_FREE_BYTES and self._log.take_ahead():
                self.say(None)


def take_spare(folder: Path, size_bytes: int) -> bool:
    """Have a file of this size that can make way. Returns False if the disk has no room for it. Raises OSError."""
    path = folder / SPARE_NAME
    descriptor = permissions.opened(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.fstat(descriptor).st_size < size_bytes:
            take_blocks(descriptor, 0, size_bytes)
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, 0)
        return False
    finally:
        os.close(descriptor)
    return True


def give_spare(folder: Path) -> bool:
    """Make way. Returns False if there was nothing to give."""
    path = folder / SPARE_NAME
    try:
        is_some = path.stat().st_size > 0
        path.unlink()
    except FileNotFoundError:
        return False
    return is_some


def _nobody() -> None:
    """Do nothing: nobody wants to know."""
