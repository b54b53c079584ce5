"""A session that waits for what another thread does for it: the loop goes on, and looks whether it is done.

Law 9: whoever may not wait (a transaction, a script) has it done at once, and all wait.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from rlite_pubsub.engine.waits.waiter import Blocked

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

T = TypeVar("T")
LOOK_SECONDS = 0.002


class ThreadWait(Blocked, Generic[T]):
    """One wait, which nobody may cut short."""

    def __init__(self, session: CommandSession, work: Callable[[], T], finish: Callable[[T], bytes]) -> None:
        """`work` is called in a thread of its own, and must not fail; `finish` then in a turn, and answers what is to
        be said. It is called though the session has gone meanwhile: what the work has done is done."""
        self._session = session
        self._work = work
        self._finish = finish
        self._results: list[T] = []
        threading.Thread(target=self._run, name="rlite-work", daemon=True).start()
        session.engine.call_later(LOOK_SECONDS, self._look)

    def _run(self) -> None:
        self._results.append(self._work())

    def _look(self) -> None:
        session = self._session
        if not self._results:
            session.engine.call_later(LOOK_SECONDS, self._look)
            return
        said = self._finish(self._results[0])
        if session.id in session.engine.sessions and session.blocked is self:
            session.blocked = None
            session.send(said)
            session.resume()
