"""A session that waits for what another thread does for it: the loop goes on, and is told when it is done.

Law 9: whoever may not wait (a transaction, a script) has it done at once, and all wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from rlite_pubsub.engine.waits.waiter import Blocked

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

T = TypeVar("T")
POLL_SECONDS = 0.002


class ThreadWait(Blocked, Generic[T]):
    """One wait, which nobody may cut short."""

    def __init__(self, session: CommandSession, work: Callable[[], T], finish: Callable[[T], bytes]) -> None:
        """`work` is called in a thread of its own, and must not fail; `finish` then in a turn, and answers what is to
        be said. It is called though the session has gone meanwhile: what the work has done is done."""
        self._session = session
        self._work = work
        self._finish = finish
        self._results: list[T] = []
        self._tell = session.engine.call_from_thread
        threading.Thread(target=self._run, name="rlite-work", daemon=True).start()
        if self._tell is None:
            session.engine.call_later(POLL_SECONDS, self._poll)

    def _run(self) -> None:
        result = self._work()
        if self._tell is not None:
            self._tell(partial(self._end, result))
        else:
            self._results.append(result)

    def _poll(self) -> None:
        """In a program without a loop, which nobody could wake for it."""
        if self._results:
            self._end(self._results[0])
        else:
            self._session.engine.call_later(POLL_SECONDS, self._poll)

    def _end(self, result: T) -> None:
        session = self._session
        said = self._finish(result)
        if session.id in session.engine.sessions and session.blocked is self:
            session.send(said)
            session.go_on()
