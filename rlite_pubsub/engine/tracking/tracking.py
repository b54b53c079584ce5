"""What one session wants to be told of changed keys (CLIENT TRACKING)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client


@dataclass(slots=True)
class Tracking:
    """What a session chose with CLIENT TRACKING ON."""

    redirect: int = 0
    """The id of the session that is notified instead; 0: itself."""
    prefixes: list[bytes] = field(default_factory=list)
    broadcast: bool = False
    opt_in: bool = False
    opt_out: bool = False
    no_loop: bool = False
    caching: bool = False
    """CLIENT CACHING was said for the next command."""
    broken_redirect: bool = False

    def succeed(self, before: Tracking | None) -> None:
        """It was chosen while the session tracked already: a CLIENT CACHING holds on, and so do prefixes."""
        if before is not None:
            self.caching = before.caching
        if self.broadcast:
            held = before.prefixes if before is not None else []
            self.prefixes = sorted({*held, *(self.prefixes or [b""])})

    def begin_caching(self) -> None:
        """CLIENT CACHING was said."""
        self.caching = True

    def after_command(self, session: Client) -> None:
        """CLIENT CACHING is for one command, or one transaction; other CLIENT commands may come between."""
        if self.caching and session.transaction is None:
            command = session.last_command
            self.caching = command is not None and command.name.startswith(b"client|")
