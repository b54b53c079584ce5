"""appendfsync always: a reply leaves once what it acknowledges would survive a power cut.

A thread of its own syncs, one sync after the other, and each serves every turn that was committed before it began: so
50 publishers share one. The loop goes on meanwhile: only the sessions whose replies are withheld wait, and who merely
publishes or subscribes does not.

The loop pins what is to be synced; the thread is left with the disk.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter

from rlite_pubsub.engine.refusal import take_back
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.storage.agenda import OUTBOXES
from rlite_pubsub.storage.checkpoint import Pinned
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreClosed, StoreError

log = logging.getLogger("rlite_pubsub")

Replies = list[tuple[Session, bytes]]
Wanted = tuple[Pinned | None]


class Safekeeping:
    """The withheld replies of one server."""

    def __init__(self, data: Environment, hub: Hub, turns: Turns, loop: asyncio.AbstractEventLoop) -> None:
        self._data = data
        self._hub = hub
        self._turns = turns
        self._loop = loop
        self._waiting: deque[Replies] = deque()  # of turns that no sync has begun for
        self._in_sync = 0  # how many of the turns, oldest first, the sync under way serves
        self._tickets: dict[Session, int] = {}  # how many turns each session waits for
        self._wanted = SimpleQueue[Wanted | None]()  # None: it is over
        self._is_over = False
        self._thread: threading.Thread | None = None
        self._timed: Callable[[float], None] = _nobody

    def time_syncs(self, timed: Callable[[float], None]) -> None:
        """Call `timed`, in the thread, with the seconds that each sync takes."""
        self._timed = timed

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
        self._wanted.put((pinned,))

    def _run(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            self._loop.call_soon_threadsafe(self._end, self._synced(*wanted))

    def _synced(self, pinned: Pinned | None) -> StoreError | None:
        began = perf_counter()
        try:
            self._data.finish_sync(pinned)
            self._timed(perf_counter() - began)
        except StoreClosed:
            return None  # closing syncs
        except StoreError as failure:
            log.warning("Can't bring the store to the disk: %s", failure)
            return failure
        return None

    def _end(self, failure: StoreError | None) -> None:
        if self._is_over:
            return
        for _ in range(self._in_sync):
            self._let_go(self._waiting.popleft(), failure)
        self._in_sync = 0
        if self._waiting:
            self._begin()
        self._turns.soon()

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
                    self._hub.agenda.due |= OUTBOXES


def _nobody(seconds: float) -> None:
    """Nobody wants to know."""
