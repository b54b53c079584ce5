"""A session that waits until the store is on the disk. A thread syncs; the loop goes on, and looks now and then.

The sync begins once the turn that asked for it is over, so that it has all that was committed in it, too.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rlite_pubsub.engine.refusal import unwritten
from rlite_pubsub.engine.waits import Blocked
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import OK, Error
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.storage.environment import Environment

LOOK_SECONDS = 0.005


class DiskWait(Blocked):
    """One wait, which nobody may cut short."""

    __slots__ = ("_failure", "_session", "_thread")

    def __init__(self, session: CommandSession) -> None:
        self._session = session
        self._failure: Exception | None = None
        self._thread: threading.Thread | None = None
        session.engine.call_later(0.0, self._begin)

    def _begin(self) -> None:
        keyspace = self._session.engine.keyspace
        assert keyspace is not None
        data = keyspace.environment
        self._thread = threading.Thread(target=self._sync, args=(data,), name="rlite-pubsub-sync", daemon=True)
        self._thread.start()
        self._look()

    def _sync(self, data: Environment) -> None:
        try:
            data.sync()
        except StoreError as failure:
            self._failure = failure

    def _look(self) -> None:
        session, thread = self._session, self._thread
        assert thread is not None
        if thread.is_alive():
            session.engine.call_later(LOOK_SECONDS, self._look)
            return
        if session.id not in session.engine.sessions or session.blocked is not self:
            return  # it is gone
        session.blocked = None
        session.send(encode(OK if self._failure is None else Error(unwritten(self._failure)), session.protocol))
        session.resume()
