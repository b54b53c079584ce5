"""appendfsync always: a reply leaves once what it acknowledges would survive a power cut.

A thread of its own syncs, one sync after the other, and each serves every turn that was committed before it began: so
50 publishers share one. The loop goes on meanwhile: only the sessions whose replies are withheld wait, and who merely
publishes or subscribes does not.

Where the disk is quick the loop gives each sync a moment: what arrives meanwhile makes one large turn instead of many
small ones, and the two do not compete for Python's lock and, perhaps, for one core. It never waits longer than
`MOMENT_S`, and not at all once syncs take longer than that is worth. The loop also pins what is to be synced; the
thread is left with the disk.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from queue import Empty, SimpleQueue
from time import perf_counter

from rlite_pubsub.commands.refusal import take_back
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.delivery.hub import Hub
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.storage.checkpoint import Pinned
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreClosed, StoreError

log = logging.getLogger("rlite_pubsub")

Replies = list[tuple[CommandSession, bytes]]
Wanted = tuple[Pinned | None]

MOMENT_S = 0.002
WORTH_WAITING_S = 0.002
SYNCS_REMEMBERED = 8


class Safekeeping:
    """The withheld replies of one server."""

    def __init__(self, data: Environment, hub: Hub, turns: Turns, loop: asyncio.AbstractEventLoop) -> None:
        self._data = data
        self._hub = hub
        self._turns = turns
        self._loop = loop
        self._waiting: deque[Replies] = deque()  # of turns that no sync has begun for
        self._in_sync = 0  # how many of the turns, oldest first, the sync under way serves
        self._tickets: dict[CommandSession, int] = {}  # how many turns each session waits for
        self._wanted = SimpleQueue[Wanted | None]()  # None: it is over
        self._done = SimpleQueue[StoreError | None]()  # what became of a sync that the loop waits for
        self._lock = threading.Lock()  # for the next two
        self._is_awaited = False  # the loop waits for the sync under way
        self._is_done = False
        self._seconds = 0.0  # that a sync has taken lately
        self._is_over = False
        self._thread: threading.Thread | None = None

    def withhold(self, replies: Replies) -> None:
        """A turn was committed, and these are its replies. Called before the outboxes are flushed."""
        self._waiting.append(replies)
        withheld = self._hub.withheld
        for session in dict.fromkeys([session for session, _ in replies]):
            self._tickets[session] = self._tickets.get(session, 0) + 1
            withheld.add(session)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="rlite-pubsub-always", daemon=True)
            self._thread.start()
        if not self._in_sync:
            self._begin()

    def stop(self) -> None:
        """Sync what is withheld, and let it go. The loop does not run any more."""
        self._is_over = True
        self._wanted.put(None)
        if self._thread is not None:
            self._thread.join()
        failure = self._synced(None)
        while self._waiting:
            self._let_go(self._waiting.popleft(), failure)

    def _begin(self) -> None:
        self._in_sync = len(self._waiting)
        try:
            pinned = self._data.begin_sync()
        except StoreError:
            pinned = None  # the thread meets it again, and tells
        self._is_done = False
        self._is_awaited = self._seconds < WORTH_WAITING_S
        self._wanted.put((pinned,))
        if self._is_awaited:
            try:
                failure = self._done.get(timeout=MOMENT_S)
            except Empty:
                with self._lock:
                    self._is_awaited = self._is_done
                if not self._is_awaited:
                    return
                failure = self._done.get()
            self._let_all_go(failure)

    def _run(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            start = perf_counter()
            failure = self._synced(*wanted)
            self._seconds += (perf_counter() - start - self._seconds) / SYNCS_REMEMBERED
            with self._lock:
                self._is_done = True
                is_awaited = self._is_awaited
            if is_awaited:
                self._done.put(failure)
            else:
                self._loop.call_soon_threadsafe(self._end, failure)

    def _synced(self, pinned: Pinned | None) -> StoreError | None:
        try:
            self._data.finish_sync(pinned)
        except StoreClosed:
            return None  # closing syncs
        except StoreError as failure:
            log.warning("Can't bring the store to the disk: %s", failure)
            return failure
        return None

    def _end(self, failure: StoreError | None) -> None:
        if self._is_over:
            return
        self._let_all_go(failure)
        if self._waiting:
            self._begin()
        self._turns.soon()

    def _let_all_go(self, failure: StoreError | None) -> None:
        """Of the sync that has ended."""
        for _ in range(self._in_sync):
            self._let_go(self._waiting.popleft(), failure)
        self._in_sync = 0

    def _let_go(self, replies: Replies, failure: StoreError | None) -> None:
        if failure is not None:
            take_back(replies, failure)
        for session in dict.fromkeys([session for session, _ in replies]):
            left = self._tickets[session] - 1
            if left:
                self._tickets[session] = left
            else:
                del self._tickets[session]
                self._hub.withheld.discard(session)
                if session.dirty:
                    self._hub.dirty.append(session)
