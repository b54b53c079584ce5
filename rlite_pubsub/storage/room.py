"""How much room an environment has: its map, which grows up to the quota, the reserve beyond it, and a place on the
disk for what comes next.

LMDB needs room even for removals, so the map has a reserve beyond the quota. Even while that is open, additions may not
leave the data larger than the quota.

A full disk is handled in the same way. A little of the disk is reserved beyond the file's end, and half of it is kept
for removals: an addition is refused before it would use that (`provide`, `full`). What is removed on a full disk can be
reused after the next commit, and once nobody holds its pages (Environment.make_room).
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import lmdb

from rlite_pubsub.storage.errors import DiskFull, StoreError, StoreFull
from rlite_pubsub.storage.handle import NO_ROOM_ON_DISK, PAGE_BYTES, Handle

if TYPE_CHECKING:
    from rlite_pubsub.storage.checkpoints.checkpoint import Checkpoint
    from rlite_pubsub.storage.checkpoints.safety import Safety
    from rlite_pubsub.storage.environment import Txn
    from rlite_pubsub.storage.pages.account import Account, FreePages

log: Final = logging.getLogger("rlite_pubsub")

META_PAGES: Final = 2
EMPTY_BYTES: Final = META_PAGES * PAGE_BYTES
"""The size of an environment that holds nothing."""
_RESERVE_DIVISOR: Final = 8
_SMALLEST_RESERVE_BYTES: Final = 64 << 20
"""Removing some thousand scattered records copies a page for each, twice over."""
_TOLERANCE_DIVISOR: Final = 32
_SMALLEST_TOLERANCE_BYTES: Final = 256 << 10
"""How far a turn may exceed the quota: a removal must not be refused together with additions in the same turn. An
addition in the next turn is refused beforehand."""
_LITTLE_ROOM_BYTES: Final = 64 << 20
_MUCH_ROOM_BYTES: Final = 192 << 20
"""What the rows of turns that share a commit, and one that is too large for that, may take if each needs a page."""
_DISK_RESERVE_DIVISOR: Final = 8
_SMALLEST_DISK_RESERVE_BYTES, _LARGEST_DISK_RESERVE_BYTES = 512 << 10, 4 << 20
"""How much of the disk is reserved beyond the file's end."""
_LEAST_ADDED_BYTES: Final = 64 << 10
"""The room beyond what is kept for removals: with less, nothing is added."""
_ADDED_AT_ONCE_BYTES: Final = 64 << 10
"""An addition larger than this asks first, whatever the last look found."""
_RUN_PAGES: Final = 16
"""The adjacent pages for the list of 8,000 pages that one transaction has freed."""
_LOOK_EVERY, _LOOK_OFTEN = 64, 8
"""How many writes pass between two looks at how much room there is; where the map has little, this many; and where the
disk has little, one."""


class Room:
    """How much room one environment has left, as one process sees it."""

    def __init__(self, handle: Handle, safety: Safety, account: Account, *, quota_bytes: int, map_bytes: int) -> None:
        self._handle = handle
        self._safety = safety
        self._account = account
        self.quota_bytes = quota_bytes
        self.map_bytes = map_bytes
        self._limit_bytes = quota_bytes + max(quota_bytes // _RESERVE_DIVISOR, _SMALLEST_RESERVE_BYTES)
        self._tolerance_bytes = max(quota_bytes // _TOLERANCE_DIVISOR, _SMALLEST_TOLERANCE_BYTES)
        self._reserved_to = 0  # up to here the file has a place on the disk
        self.near_page = -1
        """Once a commit has reached this point, call `look` before the next write."""
        self.is_short = False
        """The disk is full: each write is looked at, and few of the free pages are adjacent."""
        self._left_bytes = 0  # and this much can be added
        self.wants_reserve = False
        """Call `open_reserve` before the next write."""
        self.tend_at = 0
        """Call `tend` after this many of our writes."""
        self.full: StoreError | None = None
        """Why additions should not be tried: see `is_free`."""
        self._on_full: Callable[[], None] = _nobody
        self.adopt_map()

    def call_when_full(self, changed: Callable[[], None]) -> None:
        """Call `changed` when the store becomes full, or has room again: it is called in the middle of work."""
        self._on_full = changed

    def count(self) -> None:
        """LMDB does, always."""

    # -- what a transaction may add

    def check(self, txn: Txn, bytes_before: int | None) -> None:
        """Raise StoreFull if a transaction has added more than is allowed. None before: LMDB takes care of that."""
        if bytes_before is not None and bytes_before < data_bytes(txn) > self.quota_bytes:
            raise self._over_quota()

    def check_turn(self, txn: Txn, bytes_before: int) -> None:
        """Like `check`, but tolerant of a little more."""
        after_bytes = data_bytes(txn)
        tolerated_bytes = self._tolerance_bytes * (2 if self.full is not None else 1)
        is_full = after_bytes > self.quota_bytes
        if is_full or isinstance(self.full, StoreFull):
            self._say_full(self._over_quota() if is_full else None)
        if bytes_before < after_bytes > self.quota_bytes + tolerated_bytes:
            raise self._over_quota()

    def is_free(self, txn: Txn) -> bool:
        """Return whether an addition may be tried after the store was `full`. `txn`: the caller's, which sees the
        present state."""
        if isinstance(self.full, StoreFull):
            if data_bytes(txn) <= self.quota_bytes:
                self._say_full(None)
        elif self.full is not None:
            self._look_ahead(self._handle.used_bytes())
        return self.full is None

    def _over_quota(self) -> StoreFull:
        return StoreFull(self._handle.path, self.quota_bytes)

    def _say_full(self, full: StoreError | None) -> None:
        if (self.full is None) != (full is None):
            self.full = full
            self._on_full()

    # -- now and then, before a write

    def tend(self, checkpoint: Checkpoint) -> None:
        """Look how much room there is, and make some if there is little. Called inside the gate. Raises StoreError."""
        used_bytes = self._handle.used_bytes()
        left_bytes = self.map_bytes - used_bytes
        is_last_map = self.map_bytes >= self.quota_bytes
        has_little = is_last_map and left_bytes < min(_LITTLE_ROOM_BYTES, self.map_bytes // 2)
        if self.is_short or self._reserved_to < used_bytes + _reserve_bytes(used_bytes) // 2:
            self._look_ahead(used_bytes)
        if is_last_map and left_bytes < _LITTLE_ROOM_BYTES and self.map_bytes < self._limit_bytes:
            self.wants_reserve = True
        elif has_little and checkpoint.is_behind:
            self._safety.make_safe()
        else:
            self._safety.limit_unsafe(checkpoint, used_bytes)
        every = 1 if self._disk_has_less(_LITTLE_ROOM_BYTES) else _LOOK_OFTEN if has_little else _LOOK_EVERY
        self.tend_at = checkpoint.ended + every

    def is_roomy(self) -> bool:
        """Return whether there is plenty of room: what several turns add fits, whatever they are."""
        if self.is_short or self.full is not None or self.wants_reserve or self._disk_has_less(_MUCH_ROOM_BYTES):
            return False
        return self.map_bytes <= self.quota_bytes and self._handle.used_bytes() + _MUCH_ROOM_BYTES < self.map_bytes

    # -- the map

    def open_reserve(self) -> None:
        """Open the reserve before a removal needs it: then it would be too late. Raises StoreError."""
        self.wants_reserve = False
        if self.map_bytes < self._limit_bytes:
            self._resize(self._limit_bytes)

    def grow(self, *, freeing: bool) -> None:
        """Grow the map, which LMDB has found full. Raises StoreFull if it may not be larger, and StoreError."""
        if self._handle.lmdb.reader_check():
            return  # a dead reader held pages that can be reused now
        if self._safety.may_unpin():
            with self._handle.inside():
                self._safety.make_safe()  # and so did we
            return
        if self.map_bytes < self.quota_bytes:
            self._resize(min(self.map_bytes * 2, self.quota_bytes))
        elif freeing and self.map_bytes < self._limit_bytes:
            self._resize(self._limit_bytes)
        else:
            raise self._over_quota()

    def adopt_map(self) -> None:
        """Grow the map as another process has. One with a larger quota may have filled it beyond ours: removals have
        their reserve all the same. Raises StoreError."""
        with self._handle.inside():
            used_bytes, wanted = self._handle.used_bytes(), self.map_bytes
        self._limit_bytes = max(self._limit_bytes, used_bytes + _SMALLEST_RESERVE_BYTES)
        while wanted < used_bytes:
            wanted *= 2
        self._resize(min(wanted, self.quota_bytes if used_bytes <= self.quota_bytes else self._limit_bytes))

    def forget_pages(self) -> None:
        """Remap the file: until then pages that were read through the map count as this process's memory. Raises
        StoreError."""
        self._resize(self.map_bytes)

    def _resize(self, map_bytes: int) -> None:
        self._handle.end_own_turn()
        with self._handle.gate.alone():
            self._handle.check()
            try:
                self._handle.lmdb.set_mapsize(map_bytes)  # LMDB takes the used size if that is larger
            except lmdb.Error as error:
                raise self._handle.told(error) from error
            self.map_bytes = map_bytes

    # -- a turn has reached the limit

    def say_over_quota(self) -> StoreFull:
        """Return the error for a map that was full in a turn, which cannot be repeated, and give the next turn room to
        remove."""
        try:
            self.grow(freeing=True)
        except StoreError:
            log.debug("%s: the reserve is used up, too", self._handle.path)
        full = self._over_quota()
        self._say_full(full)
        return full

    def make_on_disk(self) -> None:
        """Make room on a full disk: what the pin holds can be reused once there is a new one."""
        try:
            if self._safety.may_unpin():
                with self._handle.inside():
                    self._safety.make_safe()
            with self._handle.inside():
                used_bytes = self._handle.used_bytes()
            self._look_ahead(used_bytes)
        except StoreError as failure:
            log.debug("%s: %s", self._handle.path, failure)

    # -- the disk

    def look(self) -> None:
        """Reserve a place on the disk for a little more than there is, half of it for removals."""
        self._look_ahead(self._handle.used_bytes())

    def provide(self, adding_bytes: int) -> None:
        """Check the room for an addition in advance, on a full disk or if it is large. Raises DiskFull."""
        if not self.is_short and adding_bytes <= _ADDED_AT_ONCE_BYTES:
            return
        used_bytes = self._handle.used_bytes()
        adding_bytes += adding_bytes // 8 + _LEAST_ADDED_BYTES
        if self.is_short:
            is_there = adding_bytes <= self._left_bytes
        else:
            is_there = used_bytes + adding_bytes + self._kept_bytes(used_bytes) <= self._reserved_to
        if not is_there and not self._reserve(used_bytes, adding_bytes + self._kept_bytes(used_bytes)):
            if not self.is_short:
                self._look_ahead(used_bytes)
            if adding_bytes > self._left_bytes:
                raise self._disk_full()

    def lack(self) -> StoreError | None:
        """Return why the next transaction cannot add messages, which are small and need no adjacent pages, as of the
        last look; None if it can."""
        if isinstance(self.full, StoreFull):
            return self.full
        return self._disk_full() if self.is_short and self._left_bytes < _LEAST_ADDED_BYTES else None

    def free_pages(self, most_bytes: int) -> FreePages:
        """Return the account's free pages. Called inside the gate."""
        ahead_bytes = max(0, self._reserved_to - self._handle.used_bytes())
        with self._handle.lmdb.begin():
            return self._account.free_bytes(ahead_bytes, most_bytes)

    def enough_bytes(self, adding_bytes: int) -> int:
        """Return how many free bytes are enough to add this much on a full disk and go on. Called inside the gate."""
        return _reserve_bytes(self._handle.used_bytes()) + adding_bytes + adding_bytes // 8

    def _look_ahead(self, used_bytes: int) -> None:
        ahead_bytes = _reserve_bytes(used_bytes)
        kept_bytes = ahead_bytes // 2
        if self._reserve(used_bytes, ahead_bytes):
            self._see_whether_short(False)
            self.near_page = (used_bytes + ahead_bytes - kept_bytes) // PAGE_BYTES
        else:
            self._see_whether_short(True)
            self.near_page = -1
            size_bytes = kept_bytes
            while size_bytes > PAGE_BYTES and not self._reserve(used_bytes, size_bytes):
                size_bytes //= 2  # another process has taken some, and used it
            there_bytes = max(0, self._reserved_to - used_bytes)
            pages = self.free_pages(_LARGEST_DISK_RESERVE_BYTES)
            self._left_bytes = there_bytes + pages.usable - kept_bytes
            if there_bytes < kept_bytes and (pages.soon < ahead_bytes or not self._has_runs(there_bytes, kept_bytes)):
                self._say_full(self._disk_full())
                return
        if isinstance(self.full, DiskFull):
            self._say_full(None)

    def _has_runs(self, there_bytes: int, kept_bytes: int) -> bool:
        """Return whether additions can go on without using the pages kept for removals, which LMDB needs in runs, for
        its list of freed pages. Values of several pages use runs up if the free pages are not adjacent."""
        if there_bytes >= kept_bytes * 3 // 4:
            return True
        with self._handle.lmdb.begin():
            return self._account.has_runs(_RUN_PAGES, kept_bytes)

    def _see_whether_short(self, is_short: bool) -> None:
        self.is_short = is_short
        self._safety.hold_briefly(is_short)

    def _reserve(self, at: int, size: int) -> bool:
        """Reserve a place; return whether there is one, and True if that cannot be known."""
        if self._reserved_to >= at + size:
            return True
        try:
            self._handle.reserve(at, size)
        except OSError as error:
            if error.errno in NO_ROOM_ON_DISK:
                return False
        self._reserved_to = at + size
        return True

    def _kept_bytes(self, used_bytes: int) -> int:
        return _reserve_bytes(used_bytes) // 2

    def _disk_full(self) -> DiskFull:
        return DiskFull(self._handle.path, os.strerror(errno.ENOSPC))

    def _disk_has_less(self, wanted_bytes: int) -> bool:
        try:
            disk = os.statvfs(self._handle.path)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < wanted_bytes


def _reserve_bytes(used_bytes: int) -> int:
    part = used_bytes // _DISK_RESERVE_DIVISOR
    return min(max(part, _SMALLEST_DISK_RESERVE_BYTES), _LARGEST_DISK_RESERVE_BYTES)


def data_bytes(txn: Txn) -> int:
    """Return what the data takes, without the free pages: never 0, since an environment always has its meta pages."""
    stat = txn.stat()
    return EMPTY_BYTES + stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])


def _nobody() -> None:
    """Do nothing: nobody wants to know."""
