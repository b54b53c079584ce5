"""A session that waits until the store is on the disk (storage/checkpoints/syncing.py). The loop goes on, and is
notified.

The sync begins once the turn that asked for it is over, so that it covers all that was committed in the turn, too. A
program without a loop waits itself.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rlite_pubsub.engine.refusal import unwritten
from rlite_pubsub.engine.waits.waiter import Blocked
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import OK, Error
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.waits.waiter import CallFromThread


class DiskWait(Blocked):
    """One wait, which nobody may cut short."""

    __slots__ = ("_session",)

    def __init__(self, session: CommandSession) -> None:
        self._session = session
        session.engine.call_later(0.0, self._begin)

    def _begin(self) -> None:
        engine = self._session.engine
        if engine.call_from_thread is not None:
            engine.syncing.ask(partial(_hand_over, engine.call_from_thread, self._end))
            return
        try:
            engine.syncing.now()
        except StoreError as failure:
            self._end(failure)
        else:
            self._end(None)

    def _end(self, failure: StoreError | None) -> None:
        session = self._session
        if session.id not in session.engine.sessions or session.blocked is not self:
            return  # the session is gone
        session.send(encode(OK if failure is None else Error(unwritten(failure)), session.protocol))
        session.go_on()


def _hand_over(
    call_from_thread: CallFromThread, end: Callable[[StoreError | None], None], failure: StoreError | None
) -> None:
    """Report the end of the sync; called in its thread."""
    call_from_thread(partial(end, failure))
