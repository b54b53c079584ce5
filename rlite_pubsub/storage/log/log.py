"""The log of an open store: its windows, transactions over them and LMDB, and the checkpoints that bring them home.

    turn --append--> active window --full: freeze--> frozen windows --checkpoint, oldest first--> LMDB, and the files go

LMDB is the checkpoint. A row of it (POSITION) says up to which segment it has everything; a checkpoint writes a
window's newest rows and that row in one transaction, which LMDB itself brings to the disk.

    LAW   Commit: append, under the writer lock, to the window that is active. Freezing names the next window first
          (`next`), so whoever sees that a window is frozen knows where to go on.
    LAW   A snapshot: read the active window's tip, begin LMDB's transaction, and only then see that the window is still
          active. LMDB cannot have anything beyond that tip then.
    LAW   Bring home: commit to LMDB, then say so (`home`), then remove the files. A process that dies in between leaves
          what the next one does again, to the same end.
    LAW   After any end: LMDB as of its last commit, then the segments behind its position, as long as each begins with
          the commit that the one before ends with. What is behind a gap was never acknowledged as safe, and goes.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import lmdb

from rlite_pubsub import permissions
from rlite_pubsub.storage.errors import StoreDamaged
from rlite_pubsub.storage.handle import NO_ROOM_ON_DISK
from rlite_pubsub.storage.log.following import MOST_KEPT_BYTES, kept_from
from rlite_pubsub.storage.log.gaps import Gaps
from rlite_pubsub.storage.log.place import Place
from rlite_pubsub.storage.log.room import give_spare, take_spare
from rlite_pubsub.storage.log.transaction import POSITION, Layer, LogTransaction, Rows, segment_at_home
from rlite_pubsub.storage.system import sync, sync_folder, take_blocks
from rlite_pubsub.storage.window.plain import LOG_HEAD_BYTES, taken_by
from rlite_pubsub.storage.window.window import (
    BYTES,
    Segment,
    index_bytes,
    index_path,
    log_path,
    make_index,
    make_log,
    open_window,
    read_head,
    view_of,
)

if TYPE_CHECKING:
    from rlite_pubsub.storage.log.home import Home
    from rlite_pubsub.storage.log.transaction import LmdbTransaction

log: Final = logging.getLogger("rlite_pubsub")

_SMALLEST_BYTES: Final = 1 << 20
_DISK_DIVISOR: Final = 32
_LEAST_BYTES: Final = 64 << 10
"""A window takes such a part of what is free on the disk at the most, and at the least so much."""
_QUICK_S, _SLOW_S = 4.0, 60.0
"""A window that was full so soon is followed by one twice as large; one that took so long, by one half as large."""
_MOST_AHEAD_BYTES: Final = 1 << 20
_LEAST_LMDB_AHEAD_BYTES, _MOST_LMDB_AHEAD_BYTES = 256 << 10, 4 << 20
_AHEAD_DIVISOR: Final = 8
MOST_FROZEN: Final = 4
"""How many windows wait for a checkpoint before the writer that fills another one makes it itself."""
_POSITION: Final = Struct(">QQ")
_NAME: Final = "data.log."
_LOCK_NAME: Final = "data.checkpoint"
_FRESH_AGAIN_S: Final = 60.0
_META_PAGES: Final = 2
_SLICE_BYTES: Final = 256 << 10
_RECORD_BYTES: Final = 32
_ROW_BYTES: Final = 24
"""What a record and a row have beside keys and values, at the most."""


class Position(NamedTuple):
    """What LMDB has: the segments up to this number, and with them the commits up to this one."""

    segment: int
    commit: int


def packed_position(position: Position) -> bytes:
    """Return the value of that row."""
    return _POSITION.pack(*position)


class Writing(Protocol):
    """The store's writer lock: it dies with the process that holds it."""

    def take(self) -> bool:
        """Take it; False if this thread keeps it already, and goes on doing so."""

    def release(self) -> object: ...


class OpenWindow:
    """A window that this process has open, with its files."""

    __slots__ = ("first_commit", "index_fd", "layer", "log_fd", "number", "window")

    def __init__(self, segment: Segment, log_fd: int, index_fd: int) -> None:
        self.number = segment.number
        self.first_commit = segment.first_commit
        self.log_fd = log_fd
        self.index_fd = index_fd
        self.window = open_window(log_fd, index_fd)
        self.layer = Layer(self.window, view_of)

    def last_commit(self) -> int:
        """Return the number of the last commit in it."""
        return self.first_commit + (self.window.tip >> 32)

    def close(self) -> None:
        """Close it and its files. Transactions that read from it have ended."""
        self.layer.close()
        os.close(self.log_fd)
        os.close(self.index_fd)


class Log:
    """Open from construction to `close`, in one process. A process that forks opens its own.

    Transactions that read may run in any threads, side by side; one writes at a time.
    """

    def __init__(
        self,
        folder: Path,
        home: Home,
        store: bytes,
        writing: Writing,
        *,
        is_alone: bool,
        window_bytes: int = BYTES,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Open it; call it while nobody else opens the store. `is_alone`: nobody else has it open. Raises OSError;
        StoreDamaged; lmdb.Error."""
        self._folder = folder
        self.home = home
        self._lmdb = home.lmdb
        self._store = store
        self._writing = writing
        self._window_bytes = min(window_bytes, _SMALLEST_BYTES)  # of the next window
        self._most_window_bytes = window_bytes
        self._begun_at = time.monotonic()  # the active window
        self._now_ms = now_ms
        self._is_taken = False  # by the transaction that writes
        self.most_kept_bytes = MOST_KEPT_BYTES
        """Of segments that are home, for those who follow the log."""
        self._gaps = Gaps(self.changed)
        self.counts = False
        """Whether what commits replace is looked up, so that `grown` is exact."""
        self._ahead_of: OpenWindow | None = None
        self._ahead_to = 0  # of this window, so many bytes have their place on the disk
        self._lock = Lock()  # of what the threads of this process share
        self._readers = 0
        self._closing: list[OpenWindow] = []
        self._leaving: list[Home] = []
        self._fresh_at = 0.0  # not before then, since it has just failed
        self.keeps = False
        """Whether LMDB's transaction is kept for the next snapshot, until the windows are others. Whoever sets this
        calls `let_go` when it rests, or LMDB could use no page again that is free since."""
        self._spare: LmdbTransaction | None = None
        self._spare_of: tuple[OpenWindow, ...] = ()
        self.windows: tuple[OpenWindow, ...] = self._recovered() if is_alone else self._joined()
        """The active one, and those that are frozen, the newest first."""
        if is_alone:
            while self.checkpoint():
                pass

    @property
    def active(self) -> OpenWindow:
        """The window that commits go to."""
        return self.windows[0]

    # -- transactions

    def begin(self) -> LogTransaction:
        """Begin a transaction that reads. It is ended by `end`."""
        with self._lock:
            self._readers += 1
            spare, self._spare = self._spare, None
            spare_of = self._spare_of
        try:
            while True:
                self._catch_up()
                windows = self.windows
                active = windows[0].window
                tip = active.tip
                if spare is None:
                    checkpoint = self._lmdb.begin()
                elif spare_of is windows:
                    checkpoint, spare = spare, None
                else:
                    spare.abort()
                    spare = None
                    checkpoint = self._lmdb.begin()
                if not active.next:
                    break
                checkpoint.abort()
        except BaseException:
            if spare is not None:
                spare.abort()
            self._leave()
            raise
        layers = [(window.layer, window.window.tip) for window in windows]
        layers[0] = windows[0].layer, tip
        return LogTransaction(windows[0].first_commit + (tip >> 32), layers, checkpoint, windows, self._gaps)

    def end(self, txn: LogTransaction) -> None:
        """End a transaction; what it changed is dropped."""
        if txn.has_found_gaps and not txn.own:
            txn.tell_gaps(txn.place)
        with self._lock:
            if self.keeps and self._spare is None and txn.windows is self.windows:
                self._spare, self._spare_of = txn.lmdb, self.windows
            else:
                txn.lmdb.abort()
            self._readers -= 1
            if not self._readers and (self._closing or self._leaving):
                self._close_left()

    def forget_pages(self) -> None:
        """Map LMDB's file anew, unless somebody reads: until then its pages that were read count as this process's
        memory. Raises lmdb.Error."""
        with self._checkpointing() as is_mine, self._lock:  # no window is being brought home here, either
            if is_mine and not self._readers:
                self._let_go()
                self.home.map_anew()

    def let_go(self) -> None:
        """Keep no transaction of LMDB's while nothing is done."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.abort()

    def _stay(self) -> None:
        """Have no window closed until `_leave`."""
        with self._lock:
            self._readers += 1

    def _leave(self) -> None:
        with self._lock:
            self._readers -= 1
            if not self._readers and (self._closing or self._leaving):
                self._close_left()

    def _close_left(self) -> None:
        """Close what nobody reads from any more. The caller has the lock."""
        for window in self._closing:
            window.close()
        self._closing = []
        for home in self._leaving:
            home.close()
        self._leaving = []

    def begin_writing(self) -> LogTransaction:
        """Begin a transaction that may write, and have the writer lock until `commit` or `give_up`. Raises OSError;
        whatever the writer lock raises."""
        is_taken = self._writing.take()
        try:
            self._catch_up()
            if not self.active.window.is_whole():
                self.active.window.repair()
            txn = self.begin()
        except BaseException:
            if is_taken:
                self._writing.release()
            raise
        self._is_taken = is_taken
        txn.begin_writing()
        return txn

    def commit(self, txn: LogTransaction) -> None:
        """Commit what a transaction has changed, and end it. Raises OSError; then nothing is committed."""
        try:
            if txn.own:
                self._append(txn.own, txn.id())
                if self.counts:
                    self._take_back(txn)
                if txn.has_found_gaps:
                    active = self.active
                    txn.tell_gaps(Place(active.number, active.window.tip))
            txn.is_committed = True
        finally:
            self.give_up(txn)

    def give_up(self, txn: LogTransaction) -> None:
        """End a transaction that may write, without a commit."""
        is_taken = self._is_taken
        self.end(txn)
        if is_taken:
            self._writing.release()

    def _take_back(self, txn: LogTransaction) -> None:
        """Take off `grown` what rows have replaced that the window did not have: it counts them as new ones."""
        layer, tip = txn.layers[0]
        is_another = layer.window is not self.active.window
        replaced = 0
        for key in txn.own:
            if is_another or layer.window.get(tip, key) is None:
                before = txn.committed(key)
                if before is not None:
                    replaced += taken_by(len(key), len(before))
        if replaced:
            self.active.window.grown -= replaced

    def _append(self, rows: Rows, number: int) -> None:
        now_ms = self._now_ms()
        if self.active.window.append(rows, number, now_ms):
            return
        needed = LOG_HEAD_BYTES + _RECORD_BYTES
        for key, value in rows.items():
            needed += _ROW_BYTES + len(key) + len(value or b"")
        self.freeze(needed, len(rows))
        if not self.active.window.append(rows, number, now_ms):
            raise OSError(errno.EFBIG, "a transaction is too large for a segment of the log")

    # -- what has changed

    def place(self) -> Place:
        """Return how far is committed now."""
        self._catch_up()
        active = self.active
        return Place(active.number, active.window.tip)

    def changed(self, since: Place, until: Place) -> list[bytes] | None:
        """Return the keys that were changed between two places, in order, with repeats; None if that is not known any
        more, since segments between them are gone."""
        keys = list[bytes]()
        windows = {window.number: window for window in self.windows}
        for number in range(since.segment, until.segment + 1):
            window = windows.get(number)
            if window is None:
                return None
            begin = since.tip if number == since.segment else 0
            end = until.tip if number == until.segment else window.window.tip
            keys += window.window.changed(begin, end)
        return keys

    # -- windows

    def freeze(self, next_bytes: int = 0, next_rows: int = 0) -> None:
        """Go on in a new window, which has room for at least so many bytes and rows. The caller holds the writer lock.
        Raises OSError."""
        active = self.active
        number = active.number + 1
        for path in (log_path(self._folder, number), index_path(self._folder, number)):
            path.unlink(missing_ok=True)  # of a writer that died here
        segment = Segment(number, active.last_commit(), self._store)
        self._choose_size()
        if next_bytes > self._window_bytes:
            following = self._make(segment, next_bytes, next_rows)
        else:
            following = self._make(segment, self._window_bytes)
        with self._lock:
            self._let_go()
            self.windows = following, *self.windows
            active.window.next = number
        while len(self.windows) > MOST_FROZEN + 1 and self.checkpoint():
            pass

    def _make(self, segment: Segment, log_bytes: int, most_rows: int = 0) -> OpenWindow:
        try:
            made = self._made(segment, log_bytes, most_rows)
        except OSError as failure:
            if failure.errno not in NO_ROOM_ON_DISK or not give_spare(self._folder):
                raise
            made = self._made(segment, log_bytes, most_rows)
        sync_folder(self._folder)
        return made

    def _made(self, segment: Segment, log_bytes: int, most_rows: int) -> OpenWindow:
        log_fd = make_log(self._folder, segment)
        try:
            index_fd = make_index(self._folder, segment, log_bytes, most_rows)
        except OSError:
            os.close(log_fd)
            log_path(self._folder, segment.number).unlink(missing_ok=True)
            raise
        return OpenWindow(segment, log_fd, index_fd)

    def _choose_size(self) -> None:
        """Have the next window as large as turns come: a large one makes fewer checkpoints, a small one takes less of
        the disk."""
        now = time.monotonic()
        took_s, self._begun_at = now - self._begun_at, now
        if took_s < _QUICK_S:
            self._window_bytes = min(self._window_bytes * 2, self._most_window_bytes)
        elif took_s > _SLOW_S:
            self._window_bytes = max(self._window_bytes // 2, min(_SMALLEST_BYTES, self._most_window_bytes))
        disk = os.statvfs(self._folder)
        most_bytes = max(disk.f_bavail * disk.f_frsize // _DISK_DIVISOR, _LEAST_BYTES)
        self._window_bytes = min(self._window_bytes, most_bytes)

    def open_window(self, number: int, log_bytes: int = 0) -> OpenWindow:
        """Open a window of which others have made both files; or, with `log_bytes`, with a new index. Raises OSError;
        StoreDamaged."""
        path = log_path(self._folder, number)
        log_fd = permissions.opened(path, os.O_RDWR)
        try:
            segment = read_head(path, log_fd)
            if segment.number != number or segment.store != self._store:
                raise StoreDamaged(path, "it belongs to another store")
            if log_bytes:
                index_fd = make_index(self._folder, segment, log_bytes)
            else:
                index_fd = permissions.opened(index_path(self._folder, number), os.O_RDWR)
            try:
                return OpenWindow(segment, log_fd, index_fd)
            except ValueError as error:
                os.close(index_fd)
                raise StoreDamaged(index_path(self._folder, number), str(error)) from error
        except BaseException:
            os.close(log_fd)
            raise

    def _catch_up(self) -> None:
        """Follow the others to the window that is active now, and drop those that are home."""
        windows = self.windows
        if not windows[0].window.next and not windows[-1].window.home:
            return
        with self._lock:
            self._let_go()
            while following := self.windows[0].window.next:
                try:
                    self.windows = self.open_window(following), *self.windows
                except FileNotFoundError:  # while this process did nothing, it was brought home, and has gone
                    before = self.windows
                    self.windows = self._joined()
                    self._drop(before)
            while len(self.windows) > 1 and self.windows[-1].window.home:
                self._move()  # for each: the next one may have come home to a file that was not there a moment ago
                gone = self.windows[-1:]
                self.windows = self.windows[:-1]
                self._drop(gone)

    def _go_over(self) -> None:
        with self._lock:
            if self.home.has_newer():
                self._let_go()
                self._move()

    def _move(self) -> None:
        """Go over to the newest file of LMDB's, if there is a newer one: what has just come home is there. The caller
        has the lock."""
        if self.home.has_newer():
            newer = self.home.newer()
            self._leaving.append(self.home)
            self.home, self._lmdb = newer, newer.lmdb
            if not self._readers:
                self._close_left()

    def _drop(self, windows: tuple[OpenWindow, ...]) -> None:
        """Close windows as soon as nobody reads from them. The caller has the lock."""
        if self._readers:
            self._closing += windows
        else:
            for window in windows:
                window.close()

    def _joined(self) -> tuple[OpenWindow, ...]:
        """Open the windows that others have open. Their files may go meanwhile: then there are others."""
        while True:
            opened = list[OpenWindow]()
            try:
                number = self._position().segment + 1
                while number:
                    opened.insert(0, self.open_window(number))
                    number = opened[0].window.next
                return tuple(opened)
            except FileNotFoundError:
                for window in opened:
                    window.close()
                self._move()

    # -- checkpoints

    def _position(self) -> Position:
        """Return what LMDB has. The caller has the lock, or that of checkpoints, or this is the begin."""
        with self._lmdb.begin() as txn:
            found = txn.get(POSITION)
        return Position(*_POSITION.unpack(found)) if found is not None else Position(0, 0)

    def checkpoint(self, pause: Callable[[], None] = lambda: None, *, is_asked_for: bool = False) -> bool:
        """Bring the oldest frozen window home, unless another process is doing that. Returns whether there may be
        another one to bring. `pause` is called between slices. `is_asked_for`: into a fresh file, if much of the
        present one is free then; by itself that is done where most of it is. Raises OSError; lmdb.Error."""
        with self._checkpointing() as is_mine:
            self._catch_up()
            if is_mine:
                self._go_over()  # to a file whose maker died before it said what was home
            if not is_mine or len(self.windows) == 1:
                return False
            oldest = self.windows[-1]
            if self._position().segment < oldest.number:
                self._bring(oldest, pause)
            if self.home.has_free() if is_asked_for else self._is_to_be_fresh():
                self._make_fresh()
                self._go_over()
            oldest.window.home = 1
            self._remove_home(oldest.number)
            self._take_lmdb_ahead()
            self.take_ahead()
        self._catch_up()
        return len(self.windows) > 1

    def _is_to_be_fresh(self) -> bool:
        return time.monotonic() >= self._fresh_at and self.home.is_mostly_free()

    def _make_fresh(self) -> None:
        """Have a file of LMDB's with no free pages, before anybody forgets what has just come home. Where that fails,
        the present one stays."""
        try:
            self.home.make_fresh()
        except (lmdb.Error, OSError) as failure:
            self._fresh_at = time.monotonic() + _FRESH_AGAIN_S
            log.warning("Can't give free pages of %s back, and try again later: %s", self.home.path, failure)

    def _bring(self, window: OpenWindow, pause: Callable[[], None]) -> None:
        tip = window.window.tip
        view = view_of(window.window)
        try:
            with self._lmdb.begin(write=True) as txn:
                cursor = txn.cursor()
                place = 0
                while place >= 0:
                    rows, place = view.slice(tip, place, _SLICE_BYTES)
                    for key, value in rows:
                        if value is None:
                            txn.delete(key)
                    cursor.putmulti([(key, value) for key, value in rows if value is not None])
                    pause()
                txn.put(POSITION, packed_position(Position(window.number, window.last_commit())))
        finally:
            view.close()

    @contextmanager
    def _checkpointing(self) -> Iterator[bool]:
        """Be the one process that makes a checkpoint; yield False if another is."""
        descriptor = permissions.opened(self._folder / _LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def _remove_home(self, last: int) -> None:
        """Remove the files of segments up to this one that nobody follows any more."""
        numbers = sorted(number for number in self._numbers() if number <= last)
        kept = kept_from(self._folder)
        left = self.most_kept_bytes
        for number in reversed(numbers):
            if kept is not None and number >= kept:
                with suppress(FileNotFoundError):
                    left -= log_path(self._folder, number).stat().st_size
                if left >= 0:
                    continue
            self._remove_files(number)

    def _numbers(self) -> set[int]:
        return {int(path.name.removeprefix(_NAME)) for path in self._folder.glob(f"{_NAME}*")}

    def _remove_files(self, number: int) -> None:
        for path in (index_path(self._folder, number), log_path(self._folder, number)):
            path.unlink(missing_ok=True)

    # -- how much there is

    def live_bytes(self) -> int:
        """Return how many bytes the rows take, about: what LMDB takes, and what the windows will add to it."""
        self._stay()
        try:
            windows = self.windows
            with self._lmdb.begin() as txn:
                stat = txn.stat()
                home = segment_at_home(txn)
            grown = sum([window.window.grown for window in windows if window.number > home])
        finally:
            self._leave()
        pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"] + _META_PAGES
        return max(0, int(pages) * int(stat["psize"]) + grown)

    def unhomed_bytes(self) -> int:
        """Return how much is in the windows."""
        self._stay()
        try:
            return sum([window.window.tip % (1 << 32) * 8 - LOG_HEAD_BYTES for window in self.windows])
        finally:
            self._leave()

    def bring_all_home(self) -> None:
        """Have LMDB have everything that is committed, unless another process is bringing it. The caller holds the
        writer lock. Raises OSError; lmdb.Error."""
        if self.active.window.tip >> 32:
            self.freeze()
        while self.checkpoint():
            pass

    # -- the disk

    def has_ahead(self) -> bool:
        """Return whether the disk has taken what is kept for removals beyond the end of the log."""
        active = self.active
        wanted = active.window.tip % (1 << 32) * 8 + self._ahead_bytes() // 2
        return (self._ahead_of is active and wanted <= self._ahead_to) or self._take_log_ahead(active, wanted)

    def _ahead_bytes(self) -> int:
        return min(_MOST_AHEAD_BYTES, self._window_bytes // 4)

    def _take_log_ahead(self, active: OpenWindow, wanted: int) -> bool:
        """Have so much of a segment on the disk, and more if that can be had."""
        self._ahead_of = active
        self._ahead_to = os.fstat(active.log_fd).st_size
        if wanted <= self._ahead_to:
            return True
        further = wanted + self._ahead_bytes() // 2
        for end in (further, wanted):
            try:
                take_blocks(active.log_fd, 0, end)
            except OSError:
                continue
            self._ahead_to = end
            return True
        return False

    def take_ahead(self) -> bool:
        """Take again of the disk what makes way when it is full. Returns False if there is no room for that."""
        ahead_bytes = self._ahead_bytes()
        return take_spare(self._folder, index_bytes(self._window_bytes) + 2 * ahead_bytes) and self.has_ahead()

    def _take_lmdb_ahead(self) -> None:
        end = self.home.taken_bytes()
        ahead = min(max(end // _AHEAD_DIVISOR, _LEAST_LMDB_AHEAD_BYTES), _MOST_LMDB_AHEAD_BYTES)
        descriptor = os.open(self._lmdb.path(), os.O_RDWR | os.O_CLOEXEC)
        try:
            with suppress(OSError):  # then removals have what LMDB has free
                take_blocks(descriptor, end, ahead)
        finally:
            os.close(descriptor)

    def is_behind(self) -> bool:
        """Return whether something is committed that is not on the disk."""
        self._stay()
        try:
            for window in self.windows:
                if window.window.synced < window.window.tip % (1 << 32) * 8:
                    return True
            return False
        finally:
            self._leave()

    def sync(self) -> None:
        """Bring to the disk what is committed. Raises OSError."""
        self._stay()
        try:
            for window in reversed(self.windows):
                end = window.window.tip % (1 << 32) * 8
                if window.window.synced < end:
                    sync(window.log_fd)
                    window.window.synced = end
        finally:
            self._leave()

    # -- the begin and the end

    def _recovered(self) -> tuple[OpenWindow, ...]:
        """Open the windows that the last processes have left, and remove what is void. Nobody else has them open."""
        position = self._position()
        commit = position.commit
        opened = list[OpenWindow]()
        numbers = self._numbers()
        number = position.segment + 1
        while number in numbers:
            try:
                size = log_path(self._folder, number).stat().st_size
                window = self.open_window(number, max(self._window_bytes, size))
            except StoreDamaged as damage:
                log.warning("%s; what it had is lost", damage)
                break
            if window.first_commit != commit:
                log.warning(
                    "%s begins after commit %d, and what is before it ends with commit %d: it was not safe yet",
                    log_path(self._folder, number), window.first_commit, commit,
                )  # fmt: skip
                window.close()
                break
            window.window.repair()
            opened.insert(0, window)
            commit = window.last_commit()
            number += 1
        for void in sorted(numbers - {window.number for window in opened}):
            self._remove_files(void)
        if not opened:
            opened.append(self._make(Segment(position.segment + 1, commit, self._store), self._window_bytes))
        for newer, older in pairwise(opened):
            older.window.next = newer.number
        return tuple(opened)

    def abandon(self) -> None:
        """Close the copy of a forked child: the threads that had the lock are not there."""
        self._lock = Lock()
        self._readers = 0
        self.close()

    def close(self) -> None:
        """Close it, and its file of LMDB's. No transaction is open."""
        with self._lock:
            self._let_go()
            self._drop(self.windows)
            self._leaving.append(self.home)
            if not self._readers:
                self._close_left()

