"""The use of an environment's file: live pages, free ones, and free ones that somebody holds."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar

from rlite_pubsub.storage.errors import StoreUnwritable
from rlite_pubsub.storage.pages import free_list, holes, meta, readers
from rlite_pubsub.storage.pages.holes import Reached
from rlite_pubsub.storage.pages.readers import OldReader, ReaderWatch, TableLine

if TYPE_CHECKING:
    from pathlib import Path

    import lmdb

    from rlite_pubsub.storage.checkpoints.safety import Safety
    from rlite_pubsub.storage.handle import Handle

    Txn: TypeAlias = "lmdb.Transaction[bytes]"

T = TypeVar("T")
log = logging.getLogger("rlite_pubsub")

_DISK_BLOCK_BYTES = 512
MOST_RECORDS = 5000
"""How many records of the free list are looked at while somebody waits: 3 ms."""


class Sizes(NamedTuple):
    """The use of a file's pages, in bytes."""

    used: int
    """How far into its file the environment has ever written."""
    live: int
    """What the last commit needs of that."""
    held: int
    """What it does not need, and a reader or a checkpoint keeps; at least."""
    disk: int
    """What the file takes of the disk, where holes take nothing."""

    @property
    def free(self) -> int:
        """What is reused before the file grows, apart from what is held."""
        return self.used - self.live


class FreePages(NamedTuple):
    """Free pages, in bytes."""

    usable: int
    """Usable by the next transaction."""
    soon: int
    """Usable by the one after it: nobody holds them."""
    settled: int
    """A commit has come after the one that freed them, as it must before they are reused."""
    free: int
    """All of them, whoever holds them."""


class Paged(Protocol):
    """The environment, as this module needs it."""

    path: Path
    handle: Handle
    safety: Safety

    def read(self, work: Callable[[Txn], T]) -> T: ...

    def guard(self, work: Callable[[Txn], T]) -> T: ...

    def last_commit(self) -> int: ...


class Account:
    """The use of one environment's pages, as one process sees it."""

    def __init__(self, environment: Paged) -> None:
        self._environment = environment
        self.watch = ReaderWatch(environment.handle.readers, environment.last_commit, environment.handle.process_of)

    def sizes(self, most_records: int = MOST_RECORDS) -> Sizes:
        """Return the sizes as they are now. Raises StoreError."""
        oldest = readers.oldest(self._environment.handle.readers())
        return self._environment.read(lambda _: self._sizes(oldest, most_records))

    def held_by(self, reader: TableLine, most_records: int = MOST_RECORDS) -> int:
        """Return at least how many bytes of free pages a reader keeps from being reused, alone or with younger ones.
        Raises StoreError."""
        return self._environment.read(lambda _: self._held(reader.transaction, most_records))

    def readers(self) -> list[TableLine]:
        """Return the present readers. Raises StoreError."""
        return readers.table(self._environment.handle.readers())

    def process_of(self, number: int) -> int:
        """Return the process that has this number in LMDB's table, as it is called here; 0: unknown."""
        return self._environment.handle.process_of(number)

    def old_readers(self) -> list[OldReader]:
        """Return the readers that have been there for long, the oldest first. Each is logged once. Raises
        StoreError."""
        old = self.watch.old_ones(monotonic())
        for each in self.watch.untold(old):
            log.warning(
                "%s: %s has been reading for %.0f seconds, and keeps %d bytes from being reused",
                self._environment.path,
                each,
                each.age_s,
                self.held_by(each.reader),
            )
        return old

    def free_bytes(self, ahead_bytes: int, most_bytes: int) -> FreePages:
        """Return the free pages that have their place on the disk, counting no further than this; the disk has this
        much reserved beyond the file's end. The caller is inside a transaction."""
        oldest = readers.oldest(self._environment.handle.table())
        usable = soon = settled = free = 0
        with self._file(os.O_RDONLY) as (descriptor, latest):
            on_disk = os.fstat(descriptor).st_blocks * _DISK_BLOCK_BYTES - latest.live_bytes - ahead_bytes
            most_bytes = max(0, min(most_bytes, on_disk))
            for record in free_list.records(descriptor, latest):
                size_bytes = record.size * latest.page_bytes
                is_settled = record.transaction < latest.transaction
                usable += size_bytes if is_settled and (oldest is None or record.transaction < oldest) else 0
                soon += size_bytes if oldest is None or record.transaction <= oldest else 0
                settled += size_bytes if is_settled else 0
                free += size_bytes
                if settled >= most_bytes:
                    break
        return FreePages(*[min(each, most_bytes) for each in (usable, soon, settled, free)])

    def has_runs(self, pages: int, size_bytes: int) -> bool:
        """Return whether this much is free, and held by nobody, in runs of at least this many pages. The caller is
        inside a transaction."""
        oldest = readers.oldest(self._environment.handle.table())
        numbers: list[int] = []
        looked_at = 0
        with self._file(os.O_RDONLY) as (descriptor, latest):
            wanted = size_bytes // latest.page_bytes
            for record in free_list.records(descriptor, latest):
                if oldest is not None and record.transaction > oldest:
                    break
                numbers += record.pages(0, record.size)
                if len(numbers) >= max(wanted, 2 * looked_at):
                    looked_at = len(numbers)
                    if free_list.in_runs(numbers, pages) >= wanted:
                        return True
            return free_list.in_runs(numbers, pages) >= wanted

    def give_back(self, place: Reached, seconds: float) -> tuple[Reached | None, int]:
        """Give free pages back to the file system for this long, from a place in their list on. Returns where to go on,
        None at the end, and how many bytes it gave back. Raises StoreError."""
        safe = self._environment.safety.safe_commit()
        return self._environment.guard(partial(self._punch, place, seconds, safe))

    def _sizes(self, oldest: int | None, most_records: int) -> Sizes:
        with self._file(os.O_RDONLY) as (descriptor, latest):
            held, _ = free_list.count(descriptor, latest, oldest, most_records) if oldest is not None else (0, True)
            disk = os.fstat(descriptor).st_blocks * _DISK_BLOCK_BYTES
            return Sizes(latest.used_bytes, latest.live_bytes, held * latest.page_bytes, disk)

    def _held(self, transaction: int, most_records: int) -> int:
        with self._file(os.O_RDONLY) as (descriptor, latest):
            return free_list.count(descriptor, latest, transaction, most_records)[0] * latest.page_bytes

    def _punch(self, place: Reached, seconds: float, safe: int | None, txn: Txn) -> tuple[Reached | None, int]:
        last_commit = txn.id() - 1
        oldest = readers.oldest(self._environment.handle.table())
        deadline = monotonic() + seconds
        with self._file(os.O_RDWR) as (descriptor, latest):
            if latest.transaction != last_commit:
                return None, 0  # there has never been a commit
            oldest = min(commit for commit in (oldest, safe, last_commit) if commit is not None)
            going_on, pages = holes.punch(descriptor, latest, oldest, place, lambda: monotonic() > deadline)
            return going_on, pages * latest.page_bytes

    @contextmanager
    def _file(self, flags: int) -> Iterator[tuple[int, meta.Meta]]:
        path = self._environment.path
        try:
            descriptor = os.open(path, flags | os.O_CLOEXEC)
            try:
                latest = meta.read(descriptor)
                if latest is None:
                    raise StoreUnwritable(path, "its meta pages can't be read")
                yield descriptor, latest
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreUnwritable(path, error.strerror or str(error)) from error
