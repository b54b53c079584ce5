"""One LMDB environment: its map, its durability, and how its troubles are told.

A transaction is short, and is run here and nowhere else: `write(work)` commits what `work(txn)` did, or nothing of it.
`work` may be run more than once (the map grows by running it again), so it touches nothing but its `txn`.

Without writemap: a commit costs 3 us more, but a full disk is an error and not a SIGBUS, and what is written does not
count as this process's memory. Without named databases: a key's first byte says which one it belongs to, which saves
a root page in every commit for each of them.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar

import lmdb
from mypy_extensions import mypyc_attr

from rlite_pubsub.storage import fork
from rlite_pubsub.storage.checkpoint import Checkpoint, Pinned
from rlite_pubsub.storage.errors import (
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreFormatMismatch,
    StoreFull,
    StoreRemoved,
    StoreUnwritable,
)
from rlite_pubsub.storage.locks import lock_file
from rlite_pubsub.storage.locks.gate import Gate, NestedTransaction
from rlite_pubsub.storage.locks.writer_lock import MOMENT_S, PATIENCE_S, WriterLock
from rlite_pubsub.storage.pages import holes
from rlite_pubsub.storage.pages.account import Account

if TYPE_CHECKING:
    from rlite_pubsub.storage.turn import Turn

log: Final = logging.getLogger("rlite_pubsub")

T = TypeVar("T")
Txn: TypeAlias = "lmdb.Transaction[bytes]"
Cursor: TypeAlias = "lmdb.Cursor[bytes]"
Durability: TypeAlias = Literal["always", "everysec", "no"]

FIRST_MAP_BYTES: Final = 16 << 20
SMALLEST_QUOTA_BYTES: Final = 1 << 20
MAX_READERS: Final = 4096
"""LMDB's own default of 126 is fewer than the processes that may share a store."""
_RESERVE_DIVISOR: Final = 8
_SMALLEST_RESERVE_BYTES: Final = 64 << 20
"""Removing some thousand records that are scattered all over copies a page for each, twice over."""
_TOLERANCE_DIVISOR: Final = 32
_SMALLEST_TOLERANCE_BYTES: Final = 256 << 10
"""By so much a turn may pass the quota: who removes is not to be refused with those who add in the same turn. Whoever
adds in the next one is refused beforehand."""
_LITTLE_ROOM_BYTES: Final = 64 << 20
_DISK_RESERVE_DIVISOR: Final = 8
_SMALLEST_DISK_RESERVE_BYTES, _LARGEST_DISK_RESERVE_BYTES = 512 << 10, 4 << 20
"""So much of the disk is taken ahead of the file's end, for what removes when the disk is full."""
_LOOK_EVERY, _LOOK_OFTEN = 64, 8
"""So many writes pass between two looks at how much room there is; where the map has little, so many; and where the
disk has little, one."""
GROWN_BYTES: Final = 8 << 20
_GROWN_DIVISOR: Final = 8
"""A file that has grown so much since the last sync, and by such a part, is synced early."""
UNSAFE_WRITES: Final = 512
"""And so it is after so many writes: each has taken new pages, while those before it are still in the caches."""
MOMENT_SECONDS: Final = 0.002
"""A disk that takes no longer is waited for in place, as Redis always does: to have a thread do it takes longer."""
DELAYS: Final = 3
MOMENTS: Final = 50
"""A disk that was slow so many times in a row is not waited for until it was quick so many times. Once says nothing:
the process may have been without a processor."""
_RETRIES: Final = 100
_PAGE_BYTES: Final = 4096
_NO_ROOM_ON_DISK: Final = (errno.ENOSPC, errno.EDQUOT)
_NOBODY_ELSE: Final = memoryview(bytes(8)).cast("Q")
_never_closed: Final[list[object]] = []
"""Of processes that this one was forked from."""
_DAMAGE: Final = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.PanicError, lmdb.InvalidError)


@mypyc_attr(native_class=False)  # what it asks of lmdb is the most of it, and tests stand in for parts
class Environment:
    """Open from construction to `close`. Safe to share between threads, never with a forked child."""

    def __init__(
        self,
        path: Path,
        durability: Durability,
        *,
        quota_bytes: int,
        first_map_bytes: int = FIRST_MAP_BYTES,
        checkpointed: bool = False,
        writer: WriterLock | None = None,
    ) -> None:
        """`checkpointed`: what is synced survives a power cut (checkpoint.py). Without `writer` this process is the
        only one to write."""
        self.path = path
        self.durability = durability
        self.quota_bytes = max(quota_bytes, SMALLEST_QUOTA_BYTES)
        self._limit_bytes = self.quota_bytes + max(self.quota_bytes // _RESERVE_DIVISOR, _SMALLEST_RESERVE_BYTES)
        self._gate = Gate()
        self._map_bytes = min(first_map_bytes, self.quota_bytes)
        self._look_at = 0  # so many writes of ours will have ended when we look next how much room there is
        self._wants_reserve = False
        self._delays = 0  # so many times in a row it was slow
        self._slow = 0  # so many times the disk must be quick before it is waited for
        self._used_bytes_safe = 0  # when it was synced last
        self._on_grown: Callable[[], None] = _nobody
        self.full: StoreError | None = None  # why what adds to it should not be tried: see `has_room`
        self._on_full: Callable[[], None] = _nobody
        self._tolerance_bytes = max(self.quota_bytes // _TOLERANCE_DIVISOR, _SMALLEST_TOLERANCE_BYTES)
        self._reserved_to = 0  # so far the file has a place on the disk
        self.account = Account(self)
        self.sync_failure: StoreError | None = None  # of the last sync, whoever asked for it
        self._turns: dict[int, Turn] = {}  # the open ones, by thread
        self.writer = writer
        self._openings, self._alone = (writer.numbers, writer.alone) if writer is not None else (_NOBODY_ELSE, 0)
        try:
            lock_file.reserve(path, MAX_READERS)
        except OSError as error:
            raise StoreUnwritable(path, os.strerror(error.errno or 0)) from error
        try:
            self._lmdb = lmdb.Environment(
                str(path),
                map_size=self._map_bytes,
                subdir=False,
                mode=0o600,
                sync=False,
                metasync=False,
                readahead=False,
                max_readers=MAX_READERS,
                max_spare_txns=0,  # a spare one's slot would be taken from us by a forked child that closes its copy
            )
            self._lmdb.reader_check()
        except lmdb.Error as error:
            raise self._told(error) from error
        self._is_open = True
        self._is_condemned = False
        self._checkpoint = Checkpoint(path, self._lmdb.begin, self._to_disk) if checkpointed else None
        fork.open_here.add(self)
        self._adopt_map()

    def call_when_grown(self, grown: Callable[[], None]) -> None:
        """Call `grown` when a sync would let many pages be used again: in the midst of things, so it must only ask."""
        self._on_grown = grown

    def call_when_full(self, changed: Callable[[], None]) -> None:
        """Call `changed` when the store becomes full, or has room again: in the midst of things."""
        self._on_full = changed

    def write(self, work: Callable[[Txn], T], *, freeing: bool = False) -> T:
        """Run `work` in one write transaction and commit it. A full map is grown up to the quota, then StoreFull.

        `freeing` is for work that removes: LMDB needs room even for that, so the map has a reserve beyond the quota.
        Once that is open, work that does not free may still not leave the data larger than the quota.
        """
        checkpoint = self._checkpoint
        if checkpoint is not None:
            checkpoint.writers += 1
        try:
            result = self._retried(self._written, work, freeing)
        finally:
            if checkpoint is not None:
                checkpoint.ended += 1
                checkpoint.writers -= 1
        if self.durability == "always":
            self.sync()
        return result

    def check_writer(self) -> None:
        """Whoever writes before long asks, before it does what can't be undone. Raises StoreHeld."""
        if self._openings[0] != self._alone:
            assert self.writer is not None
            self.writer.check()

    def read(self, work: Callable[[Txn], T]) -> T:
        """Run `work` on a snapshot."""
        return self._retried(self._seen, work, False)

    def guard(self, work: Callable[[Txn], T]) -> T:
        """Run `work` while nobody writes, itself not writing either: so it needs no pin."""
        return self._retried(self._guarded, work, False)

    def begin(self, turn: Turn, *, write: bool) -> Txn:
        """A transaction that stays open until `end`: a turn's, see turn.py."""
        checkpoint = self._checkpoint if write else None
        if checkpoint is not None:
            checkpoint.writers += 1  # and then is seen whether there is a pin: see `let_go`
        me = get_ident()
        try:
            for _ in range(_RETRIES):
                if self._wants_reserve and write:
                    self._open_reserve()
                gate = self._gate
                inside = gate.inside  # the gate's `enter`, without the call
                if me in inside:
                    raise NestedTransaction
                inside.add(me)
                try:
                    if gate.owner:
                        gate.enter_after_owner(me)
                    if self._is_condemned or not self._is_open:
                        self._check_open()
                    if checkpoint is not None and (checkpoint.pin is None or checkpoint.ended >= self._look_at):
                        self._prepare(checkpoint)
                    if write and self._openings[0] != self._alone:
                        assert self.writer is not None
                        self.writer.take()
                        turn.is_locked = True
                    txn = self._lmdb.begin(write=write)
                except lmdb.Error as error:
                    self._release(turn)
                    gate.leave()
                    trouble = error
                except BaseException:
                    self._release(turn)
                    gate.leave()
                    raise
                else:
                    self._turns[me] = turn
                    turn.txn = txn
                    turn.writes = write
                    turn.bytes_before = _data_bytes(txn) if write and self._map_bytes > self.quota_bytes else None
                    return txn
                self._make_way(trouble, freeing=False)
            raise StoreBusy(self.path, "its map or its reader table changes all the time") from trouble
        except BaseException:
            if checkpoint is not None:
                checkpoint.writers -= 1
            raise

    def end(self, turn: Turn, *, commit: bool) -> None:
        """Commit what `begin` began, or undo it. Raises StoreError where it can't be committed: then it is undone."""
        txn, turn.txn = turn.txn, None
        assert txn is not None
        me = get_ident()
        del self._turns[me]
        trouble: lmdb.Error | None = None
        try:
            if not commit:
                txn.abort()
            else:
                if turn.bytes_before is not None:
                    self._check_turn(txn, turn.bytes_before)
                txn.commit()
        except StoreFull:
            txn.abort()
            raise
        except lmdb.Error as error:
            trouble = error
        finally:
            if turn.is_locked:
                turn.is_locked = False
                assert self.writer is not None
                self.writer.release()
            if turn.writes:
                turn.writes = False
                if (checkpoint := self._checkpoint) is not None:
                    checkpoint.ended += 1
                    checkpoint.writers -= 1
            gate = self._gate
            gate.inside.discard(me)
            if gate.owner:
                gate.tell_owner()
        if trouble is not None:
            raise self.told(trouble) from trouble

    def _release(self, turn: Turn) -> None:
        """`begin` has failed, after the writer's lock was taken or before."""
        turn.is_locked = False
        if self.writer is not None:
            self.writer.release_if_mine()

    def check_room(self, txn: Txn, bytes_before: int | None) -> None:
        """Raises StoreFull where a transaction has added to more than there may be. None before: LMDB sees to that."""
        if bytes_before is not None and bytes_before < _data_bytes(txn) > self.quota_bytes:
            raise StoreFull(self.path, self.quota_bytes)

    def _check_turn(self, txn: Txn, bytes_before: int) -> None:
        """As `check_room`, but for what is tolerated."""
        data_bytes = _data_bytes(txn)
        tolerated_bytes = self._tolerance_bytes * (2 if self.full is not None else 1)
        is_full = data_bytes > self.quota_bytes
        if is_full or isinstance(self.full, StoreFull):
            self._say_full(StoreFull(self.path, self.quota_bytes) if is_full else None)
        if bytes_before < data_bytes > self.quota_bytes + tolerated_bytes:
            raise StoreFull(self.path, self.quota_bytes)

    def has_room(self, txn: Txn) -> bool:
        """Whether what adds to the store may be tried, where it was `full`. `txn`: the caller's, that sees what there
        is."""
        if isinstance(self.full, StoreFull):
            if _data_bytes(txn) <= self.quota_bytes:
                self._say_full(None)
        elif self.full is not None:
            self._reserve_disk(self._used_bytes())
        return self.full is None

    def data_bytes(self, txn: Txn) -> int:
        """What the data takes as this transaction sees it, without the pages that are free."""
        return _data_bytes(txn)

    def _say_full(self, full: StoreError | None) -> None:
        if (self.full is None) != (full is None):
            self.full = full
            self._on_full()

    def told(self, error: Exception) -> Exception:
        """What an error in a turn's transaction means, in our words. What can be changed about it is changed, for the
        next turn. No transaction of this thread may be open."""
        if not isinstance(error, lmdb.Error):
            return error
        if isinstance(error, lmdb.MapFullError):
            try:
                self._grow(freeing=True)
            except StoreError:
                log.debug("%s: the reserve is used up, too", self.path)
            full: StoreError = StoreFull(self.path, self.quota_bytes)
            self._say_full(full)
            return full
        told = self._told(error)
        if error.code in _NO_ROOM_ON_DISK or (error.code == errno.EIO and isinstance(told, StoreUnwritable)):
            self._make_room_on_disk()
        return told

    def _make_room_on_disk(self) -> None:
        """What the pin holds can be used again once there is a new one."""
        try:
            if self._may_unpin:
                self.sync()
            self._reserve_disk(self.used_bytes())
        except StoreError as failure:
            log.debug("%s: %s", self.path, failure)

    def _reserve_disk(self, used_bytes: int) -> None:
        """Have a place on the disk for a little more than there is."""
        most = min(max(used_bytes // _DISK_RESERVE_DIVISOR, _SMALLEST_DISK_RESERVE_BYTES), _LARGEST_DISK_RESERVE_BYTES)
        if self._reserved_to >= used_bytes + most // 2:
            return
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                holes.reserve(descriptor, used_bytes, most)
            finally:
                os.close(descriptor)
        except OSError as error:
            if error.errno in _NO_ROOM_ON_DISK:
                with self._lmdb.begin():
                    has_free_pages = self.account.has_free_pages(most)
                if not has_free_pages:
                    self._say_full(StoreUnwritable(self.path, os.strerror(error.errno)))
                    return
        else:
            self._reserved_to = used_bytes + most
        if isinstance(self.full, StoreUnwritable):
            self._say_full(None)

    def _end_own_turn(self) -> None:
        turn = self._turns.get(get_ident())
        if turn is not None:
            turn.give_way()

    def sync(self) -> None:
        """Bring all that is committed to the disk, whatever the durability. Raises StoreError."""
        self._end_own_turn()
        with self._gate:
            self._check_open()
            self._make_safe()

    def sync_at_once(self) -> bool:
        """As `sync`, if that is one short write and nobody has to be waited for. False, and nothing is done, if not."""
        checkpoint = self._checkpoint
        if checkpoint is None:
            return False
        self._end_own_turn()
        with self._gate, self._telling():
            self._check_open()
            return self._has_made_safe(checkpoint)

    def begin_sync(self) -> Pinned | None:
        """The part of `sync` that does not touch the disk, for a thread that must not wait for it."""
        if self._checkpoint is None:
            return None
        self._end_own_turn()
        with self._gate, self._telling():
            self._check_open()
            return self._checkpoint.begin()

    def finish_sync(self, pinned: Pinned | None) -> None:
        """The rest, in any thread: what was committed when it began is on the disk then. Raises StoreError."""
        with self._gate:
            self._check_open()
            self._make_safe(pinned)

    def _make_safe(self, pinned: Pinned | None = None, patience_s: float = PATIENCE_S) -> None:
        began = perf_counter()
        used_bytes = self._used_bytes()
        try:
            with self._telling():
                self._lmdb.reader_check()  # the dead hold on to pages
                if self._checkpoint is None:
                    self._to_disk()
                elif pinned is not None:
                    self._checkpoint.finish(pinned, patience_s)
                else:
                    self._checkpoint.take(patience_s)
        except StoreError as failure:
            self.sync_failure = failure
            raise
        self.sync_failure = None
        self._used_bytes_safe = used_bytes
        if self._slow and perf_counter() - began <= MOMENT_SECONDS:
            self._slow -= 1

    def _has_made_safe(self, checkpoint: Checkpoint) -> bool:
        """At once, if it was a matter of a moment lately."""
        if self._slow:
            return False
        began = perf_counter()
        if not checkpoint.take_at_once():
            return False
        if perf_counter() - began <= MOMENT_SECONDS:
            self._delays = 0
        elif self._delays < DELAYS - 1:
            self._delays += 1
        else:
            self._delays, self._slow = 0, MOMENTS
        self._used_bytes_safe = self._used_bytes()
        return True

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What goes wrong on the way to the disk is told in our words."""
        try:
            yield
        except lmdb.Error as error:
            raise self._told(error) from error
        except OSError as error:
            raise StoreUnwritable(self.path, os.strerror(error.errno or 0)) from error

    def _to_disk(self) -> None:
        self._lmdb.sync(True)

    # -- the pin

    @property
    def is_behind(self) -> bool:
        """Whether this process may have committed something that is not safe."""
        checkpoint = self._checkpoint
        return checkpoint.is_behind if checkpoint is not None else False

    @property
    def is_pinned(self) -> bool:
        """Whether this process holds on to the pages of a checkpoint."""
        return self._checkpoint is not None and self._checkpoint.pin is not None

    @property
    def writes(self) -> int:
        """How many writes of this process have ended."""
        checkpoint = self._checkpoint
        return checkpoint.ended if checkpoint is not None else 0

    def let_go(self) -> bool:
        """Law 10: hold no page, if nothing is being written and all that was is safe. Whether it is so."""
        return self._checkpoint is None or self._checkpoint.let_go()

    def safe_commit(self) -> int | None:
        """The last commit that survives a power cut, whoever has made it; -1 if there is none, and None where none ever
        does. Raises StoreError."""
        if self._checkpoint is None:
            return None
        with self._telling():
            return self._checkpoint.saved()

    def _prepare(self, checkpoint: Checkpoint) -> None:
        """Law of checkpoint.py: no write without a pin. And a look at how much room there is. Inside the gate."""
        if checkpoint.pin is None:
            with self._telling():
                is_held = checkpoint.hold()
            if not is_held:
                self._make_safe(patience_s=self._patience_s)
        if checkpoint.ended >= self._look_at:
            self._look_at_room(checkpoint)

    def _look_at_room(self, checkpoint: Checkpoint) -> None:
        used_bytes = self._used_bytes()
        left_bytes = self._map_bytes - used_bytes
        is_last_map = self._map_bytes >= self.quota_bytes
        has_little_room = is_last_map and left_bytes < min(_LITTLE_ROOM_BYTES, self._map_bytes // 2)
        self._reserve_disk(used_bytes)
        if is_last_map and left_bytes < _LITTLE_ROOM_BYTES and self._map_bytes < self._limit_bytes:
            self._wants_reserve = True
        elif has_little_room and checkpoint.is_behind:
            self._make_safe(patience_s=self._patience_s)  # what the pin holds can be used again then
        elif checkpoint.unsafe >= UNSAFE_WRITES or used_bytes - self._used_bytes_safe > max(
            GROWN_BYTES, used_bytes // _GROWN_DIVISOR
        ):
            if not self._has_made_safe(checkpoint):
                self._on_grown()
        every = 1 if self._disk_is_nearly_full() else _LOOK_OFTEN if has_little_room else _LOOK_EVERY
        self._look_at = checkpoint.ended + every

    def _disk_is_nearly_full(self) -> bool:
        try:
            disk = os.statvfs(self.path)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < _LITTLE_ROOM_BYTES

    @property
    def _patience_s(self) -> float:
        """For how long who writes may wait for another process that saves a checkpoint."""
        writer = self.writer
        return PATIENCE_S if writer is None else MOMENT_S if writer.is_loop else writer.patience_s

    @property
    def _may_unpin(self) -> bool:
        """Whether the pin holds on to pages that a new one would not."""
        checkpoint = self._checkpoint
        return checkpoint is not None and checkpoint.pin is not None and checkpoint.safe < self.last_commit()

    def sync_by(self, durability: Durability) -> None:
        """When a commit is brought to the disk from now on."""
        self.durability = durability

    def last_commit(self) -> int:
        """A number that every commit moves, whoever makes it."""
        self._end_own_turn()
        with self._gate:
            self._check_open()
            return int(self._lmdb.info()["last_txnid"])

    def look_at_readers(self) -> None:
        """Clear LMDB's table of those that have died, and tell of those that keep pages for long."""
        try:
            self._end_own_turn()
            with self._gate:
                self._check_open()
                self._lmdb.reader_check()
            self.account.old_readers()
        except (StoreError, lmdb.Error) as failure:
            log.debug("%s: its readers can't be looked at: %s", self.path, failure)

    def readers(self) -> str:
        """LMDB's table of readers, as text."""
        self._end_own_turn()
        with self._gate:
            self._check_open()
            return self.table()

    def table(self) -> str:
        """The same, for who is inside a transaction."""
        return self._lmdb.readers()

    def forget_pages(self) -> None:
        """Map the file anew: pages that were read through the map count as this process's memory until then."""
        self._resize(self._map_bytes)

    def used_bytes(self) -> int:
        """How far into its file this environment has ever written: free pages within it are used again first."""
        self._end_own_turn()
        with self._gate:
            self._check_open()
            return self._used_bytes()

    def _used_bytes(self) -> int:
        return int(self._lmdb.info()["last_pgno"] + 1) * _PAGE_BYTES

    def close(self) -> None:
        with self._gate.alone():
            if self._is_open:
                if self._checkpoint is not None:
                    self._close_safely(self._checkpoint)
                self._is_open = False
                self._stop_writing()
                self._lmdb.close()
        fork.open_here.discard(self)

    def _stop_writing(self) -> None:
        self._openings, self._alone = _NOBODY_ELSE, 0
        if self.writer is not None:
            self.writer.close()

    def _close_safely(self, checkpoint: Checkpoint) -> None:
        try:
            if checkpoint.is_behind:
                self._make_safe()
        except StoreError as failure:
            log.warning("A power cut may take back what was committed last: %s", failure)
        checkpoint.release()

    def shut(self, patience_s: float) -> bool:
        """Let no transaction begin until `reopen`, once none is open: a fork must not copy one half-way through."""
        if not self._gate.shut(patience_s):
            return False
        if self._checkpoint is not None:
            self._checkpoint.release()  # as a child that closes its copy would; until the next we write nothing
        return True

    def reopen(self) -> None:
        self._gate.reopen()

    def abandon(self, *, idle: bool) -> None:
        """In a forked child: it is not open here. Its copy is closed if that cannot harm the parent."""
        self._turns.clear()
        pins = self._checkpoint.abandon() if self._checkpoint is not None else []
        if pins:
            _never_closed.extend(pins)
            idle = False
        self._gate = Gate()
        self._is_open = False
        self._stop_writing()
        if idle:
            self._lmdb.close()
        else:
            _never_closed.append(self._lmdb)

    def _written(self, work: Callable[[Txn], T], freeing: bool) -> T:
        checkpoint = self._checkpoint
        if checkpoint is not None and (checkpoint.pin is None or checkpoint.ended >= self._look_at):
            self._prepare(checkpoint)
        writer = self.writer if self._openings[0] != self._alone else None
        try:
            if writer is not None:
                writer.take()
            with self._lmdb.begin(write=True) as txn:
                bytes_before = None if freeing or self._map_bytes <= self.quota_bytes else _data_bytes(txn)
                result = work(txn)
                self.check_room(txn, bytes_before)
        except BaseException:
            if writer is not None:
                writer.release_if_mine()
            raise
        if writer is not None:
            writer.release()
        return result

    def _guarded(self, work: Callable[[Txn], T], freeing: bool) -> T:
        writer = self.writer if self._openings[0] != self._alone else None
        try:
            if writer is not None:
                writer.take()
            txn = self._lmdb.begin(write=True)
            try:
                return work(txn)
            finally:
                txn.abort()
        finally:
            if writer is not None:
                writer.release_if_mine()

    def _seen(self, work: Callable[[Txn], T], freeing: bool) -> T:
        with self._lmdb.begin() as txn:
            return work(txn)

    def _retried(self, attempt: Callable[[Callable[[Txn], T], bool], T], work: Callable[[Txn], T], freeing: bool) -> T:
        gate = self._gate
        if self._turns:
            self._end_own_turn()
        for _ in range(_RETRIES):
            if self._wants_reserve:
                self._open_reserve()
            gate.enter()
            try:
                self._check_open()
                return attempt(work, freeing)
            except lmdb.Error as error:
                trouble = error
            finally:
                gate.leave()
            self._make_way(trouble, freeing=freeing)
        raise StoreBusy(self.path, "its map or its reader table changes all the time") from trouble

    def _make_way(self, trouble: lmdb.Error, *, freeing: bool) -> None:
        """Remove the cause, so that the attempt can be repeated, or raise what it means."""
        if isinstance(trouble, lmdb.MapFullError):
            self._grow(freeing=freeing)
        elif isinstance(trouble, lmdb.MapResizedError):
            self._adopt_map()
        elif isinstance(trouble, lmdb.ReadersFullError | lmdb.BadRslotError):
            if not self._lmdb.reader_check():
                raise self._without_slots() from trouble
        else:
            told = self._told(trouble)
            raise told from (None if told is trouble else trouble)

    def _grow(self, *, freeing: bool) -> None:
        if self._lmdb.reader_check():
            return  # a dead reader held on to pages that can be used again now
        if self._may_unpin:
            self.sync()  # and so did we
            return
        if self._map_bytes < self.quota_bytes:
            self._resize(min(self._map_bytes * 2, self.quota_bytes))
        elif freeing and self._map_bytes < self._limit_bytes:
            self._resize(self._limit_bytes)
        else:
            raise StoreFull(self.path, self.quota_bytes)

    def _open_reserve(self) -> None:
        """Before a write needs it that only removes: then it would be too late."""
        self._wants_reserve = False
        if self._map_bytes < self._limit_bytes:
            self._resize(self._limit_bytes)

    def _adopt_map(self) -> None:
        """Another process has grown it: take the same step that it took. One with a larger quota may have filled it
        beyond ours: what removes has its reserve all the same."""
        used_bytes, wanted = self.used_bytes(), self._map_bytes
        self._limit_bytes = max(self._limit_bytes, used_bytes + _SMALLEST_RESERVE_BYTES)
        while wanted < used_bytes:
            wanted *= 2
        self._resize(min(wanted, self.quota_bytes if used_bytes <= self.quota_bytes else self._limit_bytes))

    def _resize(self, map_bytes: int) -> None:
        self._end_own_turn()
        with self._gate.alone():
            self._check_open()
            try:
                self._lmdb.set_mapsize(map_bytes)  # LMDB takes what is used already where that is more
            except lmdb.Error as error:
                raise self._told(error) from error
            self._map_bytes = map_bytes

    def condemn(self) -> None:
        """It is at its path no more: every use raises StoreRemoved from now on."""
        self._is_condemned = True

    def _check_open(self) -> None:
        if self._is_condemned:
            raise StoreRemoved(self.path.parent)
        if not self._is_open:
            raise StoreClosed(self.path)

    def _told(self, error: lmdb.Error) -> StoreError | lmdb.Error:
        """In our words, if the store or the OS is to blame; as it is, if the caller of lmdb is."""
        if error.code > 0 and not isinstance(error, lmdb.InvalidParameterError):
            code = self._reason_of_short_write() if error.code == errno.EIO else error.code
            return StoreUnwritable(self.path, os.strerror(code))
        if isinstance(error, lmdb.ReadersFullError):
            return self._without_slots()
        if isinstance(error, lmdb.VersionMismatchError):
            return StoreFormatMismatch(self.path, "of another LMDB", f"of LMDB {'.'.join(map(str, lmdb.version()))}")
        if isinstance(error, _DAMAGE):
            return StoreDamaged(self.path, error.reason)
        return error

    def _without_slots(self) -> StoreBusy:
        return StoreBusy(self.path, f"all of its {MAX_READERS} reader slots are taken")

    def _reason_of_short_write(self) -> int:
        """LMDB says EIO when a write came out short, and not why: what the OS says to one more page does."""
        try:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            return error.errno or errno.EIO
        try:
            os.posix_fallocate(descriptor, os.fstat(descriptor).st_size, _PAGE_BYTES)
        except OSError as error:
            return error.errno or errno.EIO
        finally:
            os.close(descriptor)
        return errno.EIO


def _nobody() -> None:
    """Nobody wants to know."""


def _data_bytes(txn: Txn) -> int:
    """What the data takes, without the pages that are free."""
    stat = txn.stat()
    return stat["psize"] * (stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"])
