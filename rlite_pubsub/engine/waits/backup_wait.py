"""A session that waits until everything committed can be restored from a backup (engine/backups.py): SAVE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.backups import MOMENT_SECONDS
from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import OK, Error, Reply
from rlite_pubsub.storage.commons.backup_state import BackupState

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession

POLL_SECONDS: Final = 0.05
RING_EVERY: Final = 20
"""After how many looks the backup is asked for again: its process may have been killed."""
ABSENT_SECONDS: Final = 30.0
"""How long the process may need to begin, or to begin again."""


class BackupWait(Blocked):
    """One wait, which nobody may cut short."""

    def __init__(self, session: CommandSession) -> None:
        """The wait begins once the turn is over, so that it covers all that was committed in the turn, too."""
        self._session = session
        self._backups = session.engine.backups
        self._later = session.engine.call_later
        self._later(0.0, self._begin)

    def _begin(self) -> None:
        self._asked_ms = self._backups.now_ms() + 1
        self._heard_ms = self._asked_ms
        self._looks = 0
        self._later(MOMENT_SECONDS, self._look)

    def _look(self) -> None:
        session, backups = self._session, self._backups
        if session.id not in session.engine.sessions or session.blocked is not self:
            return  # the session is gone
        if self._looks % RING_EVERY == 0 and backups.ring():
            self._heard_ms = backups.now_ms()
        self._looks += 1
        state = backups.state or BackupState()
        if state.as_of_ms >= self._asked_ms:
            self._end(OK)
        elif backups.has_failed(state, self._asked_ms):
            self._end(Error(f"ERR the backup has failed: {state.error}".encode()))
        elif backups.now_ms() - self._heard_ms > ABSENT_SECONDS * 1000:
            self._end(Error(b"ERR the backup has failed: its process is not running, see the server's log"))
        else:
            self._later(POLL_SECONDS, self._look)

    def _end(self, reply: Reply) -> None:
        self._session.send(encode(reply, self._session.protocol))
        self._session.go_on()
