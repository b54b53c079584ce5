"""A session that waits until the store is on the disk (storage/checkpoints/syncing.py). The loop goes on, and looks.

The sync begins once the turn that asked for it is over, so that it has all that was committed in it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.refusal import unwritten
from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import OK, Error
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

LOOK_SECONDS = 0.005


class DiskWait(Blocked):
    """One wait, which nobody may cut short."""

    __slots__ = ("_failure", "_is_synced", "_session")

    def __init__(self, session: CommandSession) -> None:
        self._session = session
        self._failure: Exception | None = None
        self._is_synced = False
        session.engine.call_later(0.0, self._begin)

    def _begin(self) -> None:
        self._session.engine.syncing.ask(self._note)
        self._look()

    def _note(self, failure: StoreError | None) -> None:
        """Called in the thread that has synced."""
        self._failure = failure
        self._is_synced = True

    def _look(self) -> None:
        session = self._session
        if not self._is_synced:
            session.engine.call_later(LOOK_SECONDS, self._look)
            return
        if session.id not in session.engine.sessions or session.blocked is not self:
            return  # it is gone
        session.blocked = None
        session.send(encode(OK if self._failure is None else Error(unwritten(self._failure)), session.protocol))
        session.resume()
