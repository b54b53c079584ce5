"""A session that waits for work in another thread: the loop goes on, and is notified when it is done.

Law 9: for a session that may not wait (a transaction, a script) the work is done at once, and all wait.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from rlite_pubsub.engine.refusal import INTERNAL
from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.protocol.encoder import error

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

log = logging.getLogger("rlite_pubsub")

T = TypeVar("T")
POLL_SECONDS = 0.002


class ThreadWait(Blocked, Generic[T]):
    """One wait, which nobody may cut short."""

    def __init__(self, session: CommandSession, work: Callable[[], T], finish: Callable[[T], bytes]) -> None:
        """`work` is called in a thread of its own; then `finish`, in a turn, returns the reply, even if the session has
        gone meanwhile: the work is done. If one of them fails, the session gets the error."""
        self._session = session
        self._work = work
        self._finish = finish
        self._ended: list[Callable[[], bytes]] = []
        self._tell = session.engine.call_from_thread
        threading.Thread(target=self._run, name="rlite-work", daemon=True).start()
        if self._tell is None:
            session.engine.call_later(POLL_SECONDS, self._poll)

    def _run(self) -> None:
        try:
            finish: Callable[[], bytes] = partial(self._finish, self._work())
        except Exception as failure:
            finish = partial(_broken, failure)
        if self._tell is not None:
            self._tell(partial(self._end, finish))
        else:
            self._ended.append(finish)

    def _poll(self) -> None:
        """Poll for the end, in a program without a loop, where the thread can wake nobody."""
        if self._ended:
            self._end(self._ended[0])
        else:
            self._session.engine.call_later(POLL_SECONDS, self._poll)

    def _end(self, finish: Callable[[], bytes]) -> None:
        session = self._session
        try:
            said = finish()
        except Exception as failure:
            said = _broken(failure)
        if session.id in session.engine.sessions and session.blocked is self:
            session.send(said)
            session.go_on()


def _broken(failure: Exception) -> bytes:
    log.error("Unexpected failure in a thread", exc_info=failure)
    return error(INTERNAL)
