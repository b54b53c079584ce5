"""An environment whose truth is the log: its transactions, with the interface of today's (environment.py).

It is chosen by RLITE_STORE_ENGINE=log, for tests, while the other one is what stores are made with: a store that was
made with one cannot be opened with the other yet.

A turn takes the writer lock when it first writes, and gives it back at its end; nothing else is locked. A window that
is full is brought home by a thread of the process that has filled it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread, get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, TypeVar

import lmdb

from rlite_pubsub.storage import fork
from rlite_pubsub.storage.errors import (
    DiskFull,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreHeld,
    StoreRemoved,
    StoreUnwritable,
)
from rlite_pubsub.storage.handle import NO_ROOM_ON_DISK
from rlite_pubsub.storage.locks.gate import Gate, NestedTransaction
from rlite_pubsub.storage.log.home import opened_home, remove_older
from rlite_pubsub.storage.log.log import Log
from rlite_pubsub.storage.log.place import Place
from rlite_pubsub.storage.log.room import UNLIMITED_BYTES, LogRoom
from rlite_pubsub.storage.log.transaction import LogTransaction
from rlite_pubsub.storage.pages.account import Sizes
from rlite_pubsub.storage.pages.readers import OldReader, ReaderWatch, TableLine
from rlite_pubsub.storage.window.window import BYTES

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Durability
    from rlite_pubsub.storage.locks.writer_lock import WriterLock
    from rlite_pubsub.storage.pages.holes import Reached
    from rlite_pubsub.storage.turn import Turn

log: Final = logging.getLogger("rlite_pubsub")

T = TypeVar("T")
Work = Callable[[Any], T]

_SPARE_BYTES: Final = 256 << 20
"""How much larger than the quota LMDB's map is at the least: it needs room for removals, and pages beside rows."""
_SLICE_PAUSE_S: Final = 0.0005
_RETRY_S: Final = 1.0
_IDLE_BYTES: Final = 1 << 20
"""So much is brought home if nobody has written for a second; less, as soon as it is as old as this."""
_OLDEST_S: Final = 60.0
_BLOCK_BYTES: Final = 512
_never_closed: Final[list[object]] = []
"""Of processes that this one was forked from."""


class LogEnvironment:
    """Open from construction to `close`. Safe to share between threads, never with a forked child."""

    def __init__(
        self,
        path: Path,
        durability: Durability,
        *,
        quota_bytes: int,
        writer: WriterLock,
        is_alone: bool,
        store: bytes = bytes(16),
        window_bytes: int = BYTES,
    ) -> None:
        """Raises StoreError."""
        self.path = path
        self.durability: Durability = durability
        self.quota_bytes = quota_bytes
        self.knows_changes = True
        self.writer = writer
        self.gate = Gate()
        self.turns: dict[int, Turn] = {}
        """The open turns, by thread."""
        self._is_open, self._is_condemned = True, False
        self._bringing: Thread | None = None
        self._bring_at = 0.0  # not before then, since it has just failed
        self._seen = Place(0, 0)  # at the last look
        self._seen_at = monotonic()  # the active window, for the first time
        self._starting = Lock()
        self._freshening: Thread | None = None
        self._disk_before = 0
        try:
            map_bytes = min(quota_bytes + max(quota_bytes // 4, _SPARE_BYTES), UNLIMITED_BYTES)
            if is_alone:
                remove_older(path.parent)
            home = opened_home(path.parent, map_bytes)
            try:
                self.log = Log(path.parent, home, store, writer, is_alone=is_alone, window_bytes=window_bytes)
            except BaseException:
                home.close()
                raise
        except (lmdb.Error, OSError) as failure:
            raise self._said(failure) from failure
        self.room = LogRoom(path, quota_bytes, self.log, self.live_bytes)
        self.safety = LogSafety(self)
        self.account = LogAccount(self)
        fork.open_here.add(self)

    # -- transactions

    def read(self, work: Work[T]) -> T:
        """Run `work` on a snapshot."""
        return self._undone(work, self.log.begin, self.log.end)

    def read_along(self, work: Work[T]) -> T:
        """Like `read`, for a question in the middle of a change: if a turn of this thread has a transaction open, run
        `work` in that one."""
        turn = self.turns.get(get_ident())
        txn = None if turn is None else turn.txn
        return self.read(work) if txn is None else work(txn)

    def write(self, work: Work[T], *, freeing: bool = False, adding_bytes: int = 0) -> T:
        """Run `work` in one transaction and commit it. Raises StoreFull, except for work that is `freeing`."""
        self._enter()
        try:
            txn = self.log.begin_writing()
            try:
                result = work(txn)
                if not freeing:
                    self.room.check_added(txn, 0 if adding_bytes else self.room.most_tolerated_bytes)
            except BaseException:
                self.log.give_up(txn)
                raise
            self.log.commit(txn)
        except (lmdb.Error, OSError) as failure:
            raise self._said(failure) from failure
        finally:
            self.gate.leave()
        self._committed()
        if self.durability == "always":
            self.sync()
        return result

    def guard(self, work: Work[T]) -> T:
        """Run `work` while nobody writes."""
        return self._undone(work, self.log.begin_writing, self.log.give_up)

    def _undone(
        self, work: Work[T], begin: Callable[[], LogTransaction], end: Callable[[LogTransaction], None]
    ) -> T:
        """Run `work` in a transaction that commits nothing."""
        self._enter()
        try:
            txn = begin()
            try:
                return work(txn)
            finally:
                end(txn)
        except (lmdb.Error, OSError) as failure:
            raise self._said(failure) from failure
        finally:
            self.gate.leave()

    def begin(self, turn: Turn, *, write: bool) -> Any:
        """Open a transaction that stays open until `end`: a turn's, see turn.py. Raises StoreError."""
        self._enter_for_turn()
        try:
            txn = self.log.begin_writing() if write else self.log.begin()
        except (lmdb.Error, OSError) as failure:
            self.gate.leave()
            raise self._said(failure) from failure
        except BaseException:
            self.gate.leave()
            raise
        turn.txn = txn  # type: ignore[assignment]
        turn.writes = write
        turn.seen = txn.id() - write
        turn.place = 0
        turn.came_from, turn.reached = turn.reached, txn.layers[0]
        self.turns[get_ident()] = turn
        return txn

    def changed_since(self, turn: Turn) -> list[bytes] | None:
        """See environment.py."""
        since, until = turn.came_from, turn.reached
        if since is None or until is None:
            return None
        return self.log.changed(Place(since[0].number, since[1]), Place(until[0].number, until[1]))

    def end(self, turn: Turn, *, commit: bool) -> None:
        """Commit what `begin` began, or undo it. Raises StoreError if the commit fails: then it is undone."""
        txn: Any = turn.txn
        turn.txn = None
        self.turns.pop(get_ident(), None)
        writes, turn.writes = turn.writes, False
        try:
            if not writes:
                self.log.end(txn)
            elif not commit:
                self.log.give_up(txn)
            else:
                try:
                    self.room.check_turn(txn)
                except BaseException:
                    self.log.give_up(txn)
                    raise
                self.log.commit(txn)
        except (lmdb.Error, OSError) as failure:
            raise self._said(failure) from failure
        finally:
            if txn.is_committed:
                turn.commits += 1
            self.gate.leave()
        if writes and commit:
            self._committed()

    def drop(self, turn: Turn) -> None:
        """Take this thread out again where an interrupted `begin` or `end` may have left it in."""
        me = get_ident()
        if self.turns.get(me) is turn:
            del self.turns[me]
        turn.writes = False
        self.writer.release_if_mine()
        self.gate.leave()

    def told(self, error: Exception) -> Exception:
        """Translate an error of a turn's transaction into ours."""
        is_ours = isinstance(error, lmdb.Error) or (isinstance(error, OSError) and error.errno is not None)
        return self._said(error) if is_ours else error

    def _enter(self) -> None:
        turn = self.turns.get(get_ident())
        if turn is not None:
            turn.give_way()
        self.gate.enter()
        if not self._is_open or self._is_condemned:
            self.gate.leave()
            raise StoreRemoved(self.path.parent) if self._is_condemned else StoreClosed(self.path)

    def _enter_for_turn(self) -> None:
        if get_ident() in self.gate.inside:
            raise NestedTransaction
        self._enter()

    def _committed(self) -> None:
        """Have a window brought home if one is full."""
        self.safety.writes += 1
        if len(self.log.windows) > 1 and self._bringing is None and monotonic() >= self._bring_at:
            with self._starting:
                if self._bringing is None and self._freshening is None:
                    self._bringing = Thread(target=self._bring_home, name="rlite-pubsub-checkpoint", daemon=True)
                    with suppress(RuntimeError):  # the interpreter is exiting
                        self._bringing.start()

    def _bring_home(self) -> None:
        try:
            while self._is_open and self.log.checkpoint(_pause):
                pass
        except (lmdb.Error, OSError) as failure:
            if not self._bring_at:
                log.warning("Can't bring the log home, and try again each second: %s", self._said(failure))
            self._bring_at = monotonic() + _RETRY_S
        else:
            self._bring_at = 0.0
        finally:
            self._bringing = None

    def freshen(self, seconds: float) -> tuple[bool, int]:
        """Bring everything home into a fresh file, if much of the present one is free: in a thread, for which this
        waits so long. Returns whether that is done, and how many bytes the file has become smaller. Raises
        StoreError."""
        thread, bringing = self._freshening, self._bringing
        if thread is None:
            if bringing is not None:  # it would take the last window from this one
                bringing.join(seconds)
                return False, 0
            self._disk_before = self.log.home.disk_bytes()
            thread = self._freshening = Thread(target=self._freshen, name="rlite-pubsub-compaction", daemon=True)
            try:
                self.guard(lambda txn: self.log.freeze())
                thread.start()
            except BaseException:
                self._freshening = None
                raise
        thread.join(seconds)
        if thread.is_alive():
            return False, 0
        self._freshening = None
        return True, max(0, self._disk_before - self.log.home.disk_bytes())

    def _freshen(self) -> None:
        try:
            while self._is_open and self.log.checkpoint(_pause, is_asked_for=len(self.log.windows) == 2):
                pass
        except (lmdb.Error, OSError) as failure:
            log.warning("Can't give free pages back: %s", self._said(failure))

    def _tend(self) -> None:
        """Bring home what lies in the log while nobody writes, or for long."""
        place = self.log.place()
        size = place.tip % (1 << 32) * 8
        now = monotonic()
        if place.segment != self._seen.segment or not size:
            self._seen_at = now
        is_idle = place == self._seen
        self._seen = place
        if is_idle:
            self.log.let_go()
        if (is_idle and size >= _IDLE_BYTES) or (place.tip >> 32 and now - self._seen_at >= _OLDEST_S):
            self.guard(lambda txn: self.log.freeze())
        if len(self.log.windows) > 1:
            self._committed()

    # -- who writes

    def check_writer(self) -> None:
        """Raise StoreHeld if another process is writing."""
        self.writer.check()

    def check_write(self) -> None:
        """Check that this process can write, before it does anything that cannot be undone. Raises StoreError."""
        self.writer.check()

    def lend(self) -> bool:
        """Lend the right to write to another thread, which calls `borrow`; until `give_back`, the loop gets StoreHeld.
        Returns False, having changed nothing, if no loop of this process waits for its writer. Raises StoreHeld."""
        if not self.writer.is_loop:
            return False
        turn = self.turns.get(get_ident())
        if turn is not None:
            turn.give_way()
        self.writer.lend()
        return True

    def borrow(self) -> None:
        """Make this the thread that writes."""
        self.writer.borrow()

    def give_back(self) -> None:
        """Give the right to write back to the loop."""
        self.writer.give_back()

    def share_commits(self, turn: Turn, call_later: object, call_from_thread: object) -> None:
        """Each turn is one append: there is nothing to share but LMDB's snapshot. `look_at_readers` lets go of that."""
        self.log.keeps = True

    def stop_sharing(self, turn: Turn) -> None:
        """Keep nothing from now on."""
        self.log.keeps = False
        self.log.let_go()

    def be_alone(self) -> None:
        """It makes no difference."""

    # -- the disk

    def sync(self) -> None:
        """Bring everything committed to the disk, whatever the durability. Raises StoreError."""
        try:
            self.log.sync()
        except OSError as failure:
            raise self._said(failure) from failure

    def sync_by(self, durability: Durability) -> None:
        """Set when commits are brought to the disk from now on."""
        self.durability = durability

    def last_commit(self) -> int:
        """Return a number that every commit of any process increases."""
        return self.read(lambda txn: int(txn.id()))

    def used_bytes(self) -> int:
        """Return how large the files are."""
        return self.account.sizes().disk

    def lack(self) -> StoreError | None:
        """Return why no message can be added now; None if one can."""
        return self.room.lack()

    def make_room(self, lack: StoreError, remove: Callable[[], bool], adding_bytes: int = 0) -> bool:
        """Make room for an addition that failed: call `remove`, which says whether there was anything to remove."""
        return remove()

    def look_at_readers(self) -> None:
        """Clear LMDB's table of dead readers, and look after the log. Called each second, by whoever has a clock."""
        with suppress(lmdb.Error):
            self.log.home.check_readers()
        with suppress(StoreHeld):
            self._tend()

    def forget_pages(self) -> None:
        """See environment.py. Who has a transaction open meanwhile keeps its pages."""
        turn = self.turns.get(get_ident())
        if turn is not None:
            turn.give_way()
        with suppress(lmdb.Error, OSError):
            self.log.forget_pages()

    def live_bytes(self) -> int:
        """Return how many bytes the rows take, about."""
        return self.log.live_bytes()

    # -- the end, and a fork

    def close(self) -> None:
        self._is_open = False
        for thread in (self._bringing, self._freshening):
            if thread is not None and thread.ident is not None and thread.ident != get_ident():
                thread.join()
        with self.gate.alone():
            self.log.close()
            self.writer.close()
        fork.open_here.discard(self)

    def condemn(self) -> None:
        """It is no longer at its path, and every use raises StoreRemoved."""
        self._is_condemned = True

    def shut(self, patience_s: float) -> bool:
        """Let no transaction begin until `reopen`, once none is open: a fork must not copy one halfway through."""
        self.log.let_go()
        for thread in (self._bringing, self._freshening):
            if thread is not None and thread.is_alive():
                thread.join(patience_s)
                if thread.is_alive():
                    return False
        return self.gate.shut(patience_s)

    def reopen(self) -> None:
        self.gate.reopen()

    def abandon(self, *, idle: bool) -> None:
        """Forget it in a forked child, where it is not open. The copy of LMDB's is closed if that cannot harm the
        parent: it would give away the slots of transactions that are open there."""
        if idle:
            self.log.abandon()
        else:
            _never_closed.append(self.log)
        self._is_open = False
        self.turns.clear()
        self.gate = Gate()
        self.writer.close()

    def _said(self, failure: Exception) -> StoreError:
        """Return what an error means, in the store's words."""
        if isinstance(failure, OSError):
            kind = DiskFull if failure.errno in NO_ROOM_ON_DISK else StoreUnwritable
            return kind(self.path, os.strerror(failure.errno or 0))
        if isinstance(failure, lmdb.Error) and failure.code > 0:
            kind = DiskFull if failure.code in NO_ROOM_ON_DISK else StoreUnwritable
            return kind(self.path, os.strerror(failure.code))
        return StoreDamaged(self.path, str(failure))


class LogSafety:
    """Whether commits are on the disk."""

    def __init__(self, environment: LogEnvironment) -> None:
        self._environment = environment
        self.writes = 0
        self.failure: StoreError | None = None
        self.is_pinned = self.is_brief = False

    @property
    def is_behind(self) -> bool:
        """True if something is committed that is not on the disk."""
        return self._environment.log.is_behind()

    def sync(self) -> None:
        """Bring everything committed to the disk. Raises StoreError."""
        try:
            self._environment.sync()
        except StoreError as failure:
            self.failure = failure
            raise
        self.failure = None

    def sync_at_once(self) -> bool:
        """Do that if it is one write: where no other window is behind."""
        if len(self._environment.log.windows) > 1:
            return False
        self.sync()
        return True

    def begin_sync(self) -> None:
        """A sync covers everything that was committed when it begins."""

    def finish_sync(self, begun: object) -> None:
        """Bring everything committed to the disk. Raises StoreError."""
        self.sync()

    def safe_commit(self) -> int | None:
        """Return the last commit that is on the disk; None if there is nothing to say."""
        return None

    def let_go(self) -> bool:
        """There is nothing to let go of."""
        return True

    def let_go_at_once(self) -> None:
        """See `let_go`."""

    def call_when_grown(self, grown: Callable[[], None]) -> None:
        """A log never has to be synced because it has grown."""

    def wait_for_no_disk(self) -> None:
        """Nobody waits for the disk but who asks for a sync."""


class LogAccount:
    """The use of the files."""

    def __init__(self, environment: LogEnvironment) -> None:
        self._environment = environment
        self.watch = ReaderWatch(str, int, int)

    def sizes(self, most_records: int = 0) -> Sizes:
        """Return the use of data.mdb and of the windows, in bytes."""
        live = self._environment.live_bytes()
        disk = 0
        for path in self._environment.path.parent.glob("data.*"):
            with suppress(FileNotFoundError):
                disk += path.stat().st_blocks * _BLOCK_BYTES
        return Sizes(max(disk, live), live, 0, disk)

    def old_readers(self) -> list[OldReader]:
        """A snapshot keeps pages no longer than a checkpoint."""
        return []

    def readers(self) -> list[TableLine]:
        """See `old_readers`."""
        return []

    def process_of(self, number: int) -> int:
        """See `old_readers`."""
        return 0

    def held_by(self, reader: TableLine, most_records: int = 0) -> int:
        """See `old_readers`."""
        return 0

    def give_back(self, place: Reached, seconds: float) -> tuple[Reached | None, int]:
        """Bring everything home into a fresh file, if much of the present one is free."""
        is_done, given_bytes = self._environment.freshen(seconds)
        return None if is_done else place, given_bytes


def _pause() -> None:
    sleep(_SLICE_PAUSE_S)
