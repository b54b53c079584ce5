"""WAIT: a session that waits until enough replicas have acknowledged its writes.

Replicas of other servers acknowledge there: while somebody waits, their reports are read every few milliseconds.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.replicas.outgoing import GET_ACK
from rlite_pubsub.engine.waits.waiter import UNBLOCKED, Blocked, WaitEnds
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.replicas.replicas import Replicas
    from rlite_pubsub.engine.waits.alarm import CallLater

log: Final = logging.getLogger("rlite_pubsub")

_LOOK_S: Final = 0.005


class ReplicaWait(Blocked):
    """The wait of one session."""

    __slots__ = ("is_over", "line", "offset", "session", "wanted")

    def __init__(self, line: ReplicaWaits, session: Client, offset: int, wanted: int) -> None:
        self.line = line
        self.session = session
        self.offset = offset
        self.wanted = wanted
        self.is_over = False

    def stop(self, with_error: bool) -> bool:
        self.line.end(self, UNBLOCKED if with_error else None)
        return True

    def time_out(self) -> None:
        """End the wait with the present count."""
        self.line.end(self, None)

    def finish(self) -> None:
        """Note that the wait is over."""
        self.is_over = True


class ReplicaWaits:
    """The waits of one engine."""

    def __init__(self, replicas: Replicas, stopwatch: Callable[[], float], call_later: CallLater) -> None:
        self._replicas = replicas
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._waiting: dict[ReplicaWait, None] = {}
        self._ends = WaitEnds(stopwatch, call_later)
        self._is_looking = False
        replicas.call_when_acknowledged(self._look)

    def begin(self, session: Client, offset: int, wanted: int, timeout_ms: int) -> None:
        """Block the session until this many replicas have everything up to this offset; 0 ms: without limit."""
        wait = ReplicaWait(self, session, offset, wanted)
        session.wait_for(wait)
        self._waiting[wait] = None
        if timeout_ms:
            self._ends.add(self._stopwatch() + timeout_ms / 1000, wait)
        self._call_later(0.0, self._ask)

    def _ask(self) -> None:
        self._replicas.mark(GET_ACK)
        self._look_later()

    def _look_later(self) -> None:
        if self._waiting and not self._is_looking:
            self._is_looking = True
            self._call_later(_LOOK_S, self._looked)

    def _looked(self) -> None:
        self._is_looking = False
        self._look()
        self._look_later()

    def _look(self) -> None:
        for wait in list(self._waiting):
            if self._count(wait.offset) >= wait.wanted:
                self.end(wait, None)

    def _count(self, offset: int) -> int:
        try:
            return self._replicas.acknowledged_by(offset)
        except StoreError as failure:
            log.debug("Can't look at replicas: %s", failure)
            return 0

    def end(self, wait: ReplicaWait, reply: Reply) -> None:
        """Let the session of a wait go on, with this reply; None: with the present number of replicas."""
        if wait.is_over:
            return
        wait.finish()
        self._waiting.pop(wait, None)
        self._ends.drop()
        session = wait.session
        if session.blocked is wait:
            if session.replies_off or session.skip_replies & 1:
                session.skip_replies >>= 1
            else:
                session.send(encode(self._count(wait.offset) if reply is None else reply, session.protocol))
            session.go_on()

    def forget(self, session: Client) -> None:
        """Forget a closed session."""
        for wait in [wait for wait in self._waiting if wait.session is session]:
            wait.finish()
            del self._waiting[wait]
