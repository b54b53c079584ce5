"""Why a session's next requests must wait, and whether CLIENT UNBLOCK may end the waiting.

A command that blocks puts one of these into `session.blocked`; whoever ends the waiting takes it out and resumes the
session. A pause is one, too, but nobody's to end except CLIENT UNPAUSE's and time's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.engine.table import Command


class Blocked:
    """A wait that nobody may cut short."""

    __slots__ = ()

    def began(self, command: Command, args: list[bytes], duration_us: int) -> None:
        """What the session called, for who counts it when the waiting ends."""

    def stop(self, session: CommandSession, with_error: bool) -> bool:
        """End the waiting as its timeout would or, `with_error`, with an UNBLOCKED error. False if it cannot be."""
        return False
