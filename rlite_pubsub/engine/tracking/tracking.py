"""The choices of one session for CLIENT TRACKING."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client


@dataclass(slots=True)
class Tracking:
    """The choices of a session in CLIENT TRACKING ON."""

    redirect: int = 0
    """The id of the session that is notified instead; 0: itself."""
    prefixes: list[bytes] = field(default_factory=list)
    broadcast: bool = False
    opt_in: bool = False
    opt_out: bool = False
    no_loop: bool = False
    caching: bool = False
    """CLIENT CACHING is in effect for the next command."""
    broken_redirect: bool = False

    def succeed(self, before: Tracking | None) -> None:
        """Take over from earlier choices: a CLIENT CACHING stays in effect, and so do prefixes."""
        if before is not None:
            self.caching = before.caching
        if self.broadcast:
            held = before.prefixes if before is not None else []
            self.prefixes = sorted({*held, *(self.prefixes or [b""])})

    def begin_caching(self) -> None:
        """Note CLIENT CACHING."""
        self.caching = True

    def after_command(self, session: Client) -> None:
        """End CLIENT CACHING after one command, or one transaction; other CLIENT commands may come between."""
        if self.caching and session.transaction is None:
            command = session.last_command
            self.caching = command is not None and command.name.startswith(b"client|")
