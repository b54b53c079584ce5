"""Syncing an environment to disk, and notifying those who wait: the one driver of fsync.

`now` syncs in the caller's thread, and so does `at_once`, for a caller that must not wait, if that is quick. Otherwise
a thread syncs, one sync after the other: `ask` reports when it is done, `late`, which a program calls after anything
that may have written, lets a second pass first, and `cron` sees by itself whether one is due. The thread exists only
while something is to be synced, and a moment longer.

A sync that is asked for covers everything committed by then: the asking thread pins it (checkpoint.py), and ours only
has the disk to do. Without a sync the pages that the last checkpoint needs are not reused, so one is due, too, when the
file has grown much, and after the last of a process's writes, whatever appendfsync says. Then nothing holds pages, and
by law 10 the pin goes.

Other processes sync what they commit. If none does (they were killed, or are stopped), a server's cron does it for
them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic, perf_counter, sleep
from typing import Any, NamedTuple, TypeAlias

from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreClosed, StoreError, StoreUnwritable

log = logging.getLogger("rlite_pubsub")

SYNC_SECONDS = 1.0
SELDOM_SECONDS = 5.0
"""Where the kernel is to decide when to write, as it would by itself; but not when nothing more is written. The pin is
as old as the last sync, and so are the pages that it keeps: it must not become one that is reported (readers.py)."""
OTHERS_SECONDS = 5.0
"""How long others' commits may be unsafe."""
_COMING_UP_S = 0.001

Done: TypeAlias = Callable[[StoreError | None], None]
"""Called in our thread when a sync has ended: with the error, if it failed."""


class _Asked(NamedTuple):
    begun: Any
    """What `begin_sync` returned; None if it failed."""
    done: Done


class Syncing:
    """Syncs one environment. A sync that fails is logged, and tried again if nobody waits for it."""

    def __init__(self, data: Environment) -> None:
        self._data = data
        self._others_done = -1  # the last commit, by anybody, that we have seen to be safe
        self._others_safe, self._others_since = -2, 0.0  # what was safe of a later commit, and since when
        self._looked_at = 0.0  # when `cron` last began a sync
        self._writes = -1  # how many writes of ours there had been by then
        self._written_at = 0.0
        self._lock = threading.Lock()
        self._asked = SimpleQueue[_Asked | None]()  # None: the thread must end
        self._under_way = 0  # how many have asked and have no answer yet
        self._is_late = False  # something was committed that is to be synced within SYNC_SECONDS, or is still pinned
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._timed: Callable[[float], None] = _nobody
        data.safety.call_when_grown(self._grown)

    def time_syncs(self, timed: Callable[[float], None]) -> None:
        """Call `timed` after each sync, in the thread that has synced, with the seconds that it took."""
        self._timed = timed

    def now(self) -> None:
        """Bring everything committed to the disk. Raises StoreError."""
        began = perf_counter()
        self._data.sync()
        self._timed(perf_counter() - began)

    def at_once(self) -> bool:
        """Bring everything committed to the disk, if that is quick. Returns False if not: then use `ask`."""
        if self._under_way or self._is_over:
            return False
        began = perf_counter()
        try:
            is_done = self._data.safety.sync_at_once()
        except StoreError:
            return False  # `ask` meets it again, and reports it
        if is_done:
            self._timed(perf_counter() - began)
        return is_done

    def ask(self, done: Done) -> None:
        """Have everything committed brought to the disk, and report to `done`."""
        try:
            asked = _Asked(self._data.safety.begin_sync(), done)
        except Exception:
            asked = _Asked(None, done)  # the sync meets it again, and reports it
        if not self._has_put(asked):
            self._serve(asked)

    def _has_put(self, asked: _Asked) -> bool:
        """Hand this to the thread; return whether it takes it."""
        with self._lock:
            self._under_way += 1
            if self._is_over:
                return False
            self._asked.put(asked)
            self._start()
        return True

    def _grown(self) -> None:
        """Ask for a sync; called in the middle of work."""
        if not self._under_way and not self._is_over:
            self._has_put(_Asked(None, _nobody_waits))

    def cron(self, now: float) -> None:
        """Begin a sync if one is due, and let go of the pin if nothing is being written. Called by a cron."""
        if self._under_way:
            return
        is_idle = self._is_idle(now)
        if self._data.safety.is_behind:
            if self._is_due(now, is_idle):
                self._looked_at = now
                self.ask(_nobody_waits)
        elif is_idle and self._data.safety.let_go():
            self._see_to_others(now)

    def _is_idle(self, now: float) -> bool:
        """Return whether a while has passed without a write."""
        writes = self._data.safety.writes
        if writes != self._writes or now < self._written_at:
            self._writes, self._written_at = writes, now
        return now >= self._written_at + SYNC_SECONDS / 2

    def _is_due(self, now: float, is_idle: bool) -> bool:
        seconds = SELDOM_SECONDS if self._data.durability == "no" and not is_idle else SYNC_SECONDS
        return not self._looked_at <= now < self._looked_at + seconds

    def _see_to_others(self, now: float) -> None:
        """Sync what others have committed, if they have not synced it for some time."""
        data = self._data
        commit = data.last_commit()
        if commit == self._others_done:
            return
        safe = data.safety.safe_commit()
        if safe is None or safe >= commit:
            self._others_done = commit
        elif safe != self._others_safe or now < self._others_since:
            self._others_safe, self._others_since = safe, now
        elif now >= self._others_since + OTHERS_SECONDS:
            self._others_since = now
            self.ask(_nobody_waits)

    def late(self) -> None:
        """Sync soon: something may have been committed. Called by one thread at a time."""
        if self._is_late or not (self._data.safety.is_pinned or self._data.safety.is_behind):
            return
        with self._lock:
            if not self._is_over:
                try:
                    self._start()
                except RuntimeError:
                    return  # the interpreter is exiting: `close` does it
                self._is_late = True

    def rest(self) -> None:
        """Wait until everything asked for is done. What is asked for later is done at once."""
        with self._lock:
            self._is_over = True
            thread = self._thread
            if thread is not None:
                self._asked.put(None)
        while thread is not None and thread.ident is not None:
            try:
                thread.join()
            except RuntimeError:  # whoever starts it was interrupted while it came up
                sleep(_COMING_UP_S)
            else:
                break

    def close(self) -> None:
        """Wait like `rest`, and sync what is left. Raises StoreError."""
        self.rest()
        if self._data.durability == "everysec" and self._data.safety.is_behind:
            self.now()

    # -- the thread

    def _start(self) -> None:
        if self._thread is None or self._thread.ident is None:  # or its start was interrupted
            self._thread = thread = threading.Thread(target=self._run, name="rlite-pubsub-sync", daemon=True)
            try:
                thread.start()  # an exception from without may come while this waits for it
            except RuntimeError:
                self._thread = None
                raise

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
            self._data.safety.finish_sync(asked.begun)
            self._timed(perf_counter() - began)
        except StoreClosed:
            pass  # closing syncs
        except StoreError as error:
            log.warning("Can't bring the store to the disk: %s", error)
            failure = error
        except Exception as error:  # the waiting ones are notified all the same, and the thread goes on
            log.exception("Can't bring the store to the disk")
            failure = StoreUnwritable(self._data.path, f"{type(error).__name__}: {error}")
        with self._lock:
            self._under_way -= 1
        asked.done(failure)
        safety = self._data.safety
        if failure is None and safety.is_brief and not safety.let_go():
            self._grown()  # more was written meanwhile

    def _catch_up(self) -> None:
        now = monotonic()
        is_idle = self._is_idle(now)
        if self._data.safety.is_behind and self._is_due(now, is_idle):
            self._looked_at = now
            with self._lock:
                self._under_way += 1
            self._serve(_Asked(None, _nobody_waits))
        self._data.look_at_readers()
        with self._lock:
            self._is_late = not (is_idle and self._data.safety.let_go())


def _nobody(seconds: float) -> None:
    """Do nothing: nobody wants to know."""


def _nobody_waits(failure: StoreError | None) -> None:
    """Do nothing: the next look tries again."""
