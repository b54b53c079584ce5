"""When an environment is brought to the disk, and who is told: the one driver of fsync.

`now` does it in the caller's thread, and so does `at_once`, for one who must not wait, as long as it is a matter of a
moment. Otherwise a thread of ours does it, one sync after the other: `ask` tells when it is done, `late` (appendfsync
everysec in a program) lets a second pass before, and `look`, which a cron calls, sees for itself whether one is due.
The thread is there only while something is to be synced, and a moment longer.

A sync that is asked for has all that was committed by then: the asking thread pins it (checkpoint.py), and ours is left
with the disk. Without a sync the pages that the last checkpoint needs are not used again, so one is due, too, when the
file has grown much.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import NamedTuple, TypeAlias

from rlite_pubsub.storage.checkpoint import Pinned
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreClosed, StoreError

log = logging.getLogger("rlite_pubsub")

SYNC_SECONDS = 1.0
SELDOM_SECONDS = 30.0
"""Where the kernel is to decide when to write, as it would by itself."""
GROWN_BYTES = 64 << 20
MOMENT_SECONDS = 0.002
"""A disk that takes no longer is waited for in place, as Redis always does: to have a thread do it takes longer."""
MOMENTS = 50
"""So many times a disk that was slow is quick before it is waited for again."""

Done: TypeAlias = Callable[[StoreError | None], None]
"""Called in our thread when a sync has ended: why it has failed, if it has."""


class _Asked(NamedTuple):
    commit: int
    pinned: Pinned | None
    done: Done


class Syncing:
    """Of one environment. A sync that fails is logged, and tried again where nobody waits for it."""

    def __init__(self, data: Environment) -> None:
        self._data = data
        self._synced = data.last_commit()
        self._size_bytes = data.used_bytes()
        self._looked_at = 0.0  # when `look` has begun a sync last
        self._lock = threading.Lock()
        self._asked = SimpleQueue[_Asked | None]()  # None: the thread is to end
        self._under_way = 0  # how many have asked and are not told yet
        self._slow = 0  # so many times the disk must be quick before it is waited for
        self._is_late = False  # something was committed that is to be synced within SYNC_SECONDS
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._timed: Callable[[float], None] = _nobody

    def time_syncs(self, timed: Callable[[float], None]) -> None:
        """Call `timed` after each sync, in the thread that has synced, with the seconds that it took."""
        self._timed = timed

    def now(self) -> None:
        """Bring all that is committed to the disk. Raises StoreError."""
        commit, began = self._data.last_commit(), perf_counter()
        self._data.sync()
        self._synced = commit
        self._timed(perf_counter() - began)

    def at_once(self) -> bool:
        """Bring all that is committed to the disk, if that takes a moment only. False if not: then `ask`."""
        if self._slow or self._under_way or self._is_over:
            return False
        began = perf_counter()
        try:
            commit = self._data.last_commit()
            if not self._data.sync_at_once():
                return False
        except StoreError:
            return False  # who is asked meets it again, and tells
        self._synced = commit
        took = perf_counter() - began
        if took > MOMENT_SECONDS:
            self._slow = MOMENTS
        self._timed(took)
        return True

    def ask(self, done: Done) -> None:
        """Have all that is committed brought to the disk."""
        try:
            asked = _Asked(self._data.last_commit(), self._data.begin_sync(), done)
        except StoreError:
            asked = _Asked(-1, None, done)  # the sync meets it again, and tells
        with self._lock:
            self._under_way += 1
            if not self._is_over:
                self._asked.put(asked)
                self._start()
                return
        self._serve(asked)

    def look(self, now: float) -> None:
        """Begin a sync if one is due. Called by a cron."""
        if self._under_way or not self._is_behind or not self._is_due(now):
            return
        self._looked_at = now
        self._size_bytes = self._data.used_bytes()
        self.ask(_nobody_waits)

    def late(self) -> None:
        """Something may have been committed. Called by one thread at a time."""
        if self._is_late or self._data.durability != "everysec" or not self._is_behind:
            return
        with self._lock:
            if not self._is_over:
                try:
                    self._start()
                except RuntimeError:
                    return  # the interpreter is on its way out: `close` does it
                self._is_late = True

    def rest(self) -> None:
        """Wait until what was asked for is done. What is asked for later is done at once."""
        with self._lock:
            self._is_over = True
            thread = self._thread
            if thread is not None:
                self._asked.put(None)
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """As `rest`, and sync what is left. Raises StoreError."""
        self.rest()
        if self._data.durability == "everysec" and self._is_behind:
            self.now()

    @property
    def _is_behind(self) -> bool:
        """Whether something was committed since the last sync."""
        return self._data.last_commit() != self._synced

    def _is_due(self, now: float) -> bool:
        seconds = SELDOM_SECONDS if self._data.durability == "no" else SYNC_SECONDS
        is_time = not self._looked_at <= now < self._looked_at + seconds
        return is_time or self._data.used_bytes() > self._size_bytes + GROWN_BYTES

    # -- the thread

    def _start(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="rlite-pubsub-sync", daemon=True)
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while True:
            try:
                asked = self._asked.get(timeout=SYNC_SECONDS)
            except Empty:
                if self._is_late:
                    self._catch_up()
                with self._lock:
                    if self._asked.empty() and not self._is_late:
                        self._thread = None
                        return
            else:
                if asked is None:
                    return
                self._serve(asked)

    def _serve(self, asked: _Asked) -> None:
        began = perf_counter()
        failure: StoreError | None = None
        try:
            self._data.finish_sync(asked.pinned)
            self._synced = asked.commit
            took = perf_counter() - began
            if self._slow and took <= MOMENT_SECONDS:
                self._slow -= 1
            self._timed(took)
        except StoreClosed:
            pass  # closing syncs
        except StoreError as error:
            log.warning("Can't bring the store to the disk: %s", error)
            failure = error
        with self._lock:
            self._under_way -= 1
        asked.done(failure)

    def _catch_up(self) -> None:
        try:
            self.now()
        except StoreError as failure:
            log.warning("Can't bring the store to the disk: %s", failure)
            return
        with self._lock:
            self._is_late = self._is_behind


def _nobody(seconds: float) -> None:
    """Nobody wants to know."""


def _nobody_waits(failure: StoreError | None) -> None:
    """The next look tries again."""
