"""appendfsync always: a reply leaves once what it acknowledges would survive a power cut.

A disk that is quick is waited for at the turn's end: its sync takes less than to have a thread do it. Otherwise a
thread syncs (storage/checkpoints/syncing.py), one sync after the other, and each serves every turn that was committed
before it began: so 50 publishers share one. The loop goes on meanwhile: only the sessions whose replies are withheld
wait, and who merely publishes or subscribes does not.
"""

from __future__ import annotations

import asyncio
from collections import deque

from rlite_pubsub.engine.refusal import take_back
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.storage.checkpoints.syncing import Syncing
from rlite_pubsub.storage.errors import StoreError

Replies = list[tuple[Session, bytes]]


class Safekeeping:
    """The withheld replies of one server."""

    def __init__(self, syncing: Syncing, hub: Hub, turns: Turns, loop: asyncio.AbstractEventLoop) -> None:
        self._syncing = syncing
        self._hub = hub
        self._turns = turns
        self._loop = loop
        self._waiting: deque[Replies] = deque()  # of turns that no sync has begun for
        self._in_sync = 0  # how many of the turns, oldest first, the sync under way serves
        self._is_over = False

    def withhold(self, replies: Replies) -> None:
        """A turn was committed, and these are its replies. Called before the outboxes are flushed."""
        if not self._waiting and self._syncing.at_once():
            return
        self._waiting.append(replies)
        for session in dict.fromkeys([session for session, _ in replies]):
            self._hub.withhold(session)
        if not self._in_sync:
            self._begin()

    def stop(self) -> None:
        """Sync what is withheld, and let it go. The loop does not run any more."""
        self._is_over = True
        self._syncing.rest()
        self._syncing.ask(self._let_all_go)

    def _let_all_go(self, failure: StoreError | None) -> None:
        while self._waiting:
            self._let_go(self._waiting.popleft(), failure)

    def _begin(self) -> None:
        self._in_sync = len(self._waiting)
        self._syncing.ask(self._end_soon)

    def _end_soon(self, failure: StoreError | None) -> None:
        """Called in the thread that has synced."""
        if not self._is_over:
            self._loop.call_soon_threadsafe(self._end, failure)

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
            self._hub.let_go(session)
