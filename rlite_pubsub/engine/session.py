"""One client connection as commands see it: its state, and the engine that executes its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from rlite_pubsub.engine.client import Client

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.pubsub.outbox import Outbox


@mypyc_attr(allow_interpreted_subclasses=True)
class CommandSession(Client):
    """A session that executes commands."""

    __slots__ = ("engine",)

    def __init__(self, engine: Engine, outbox: Outbox | None = None) -> None:
        super().__init__(engine.next_session_id(), engine.hub, engine.clock(), engine.users.default, outbox)
        self.engine = engine

    def reset(self) -> None:
        """Return the session to its first state (RESET). Redis leaves NO-EVICT on, and so do we; a reply that CLIENT
        REPLY SKIP silences stays silenced."""
        self.discard()
        self.engine.monitors.pop(self, None)
        self.no_touch = False
        self.replies_off = False
        self.engine.tracked.forget(self)
        self.db = 0
        self.name = b""
        self.user = b"default"
        self.logged_in = self.authenticated = self.engine.users.default.is_open
        self.restrict(self.engine.users.limits)
        self.leave_in_peace()
        self.hub.forget(self)
        if self.consumes:
            self.engine.consuming.forget(self)
        if self.protocol != 2:
            self.protocol = 2

    def discard(self) -> None:
        """End the transaction, and stop watching keys."""
        self.transaction = None
        self.unwatch()

    def unwatch(self) -> None:
        """Stop watching keys, whatever has happened to them."""
        self.engine.watching.unwatch(self)
        self.cas_broken = False

    def end_exec(self) -> None:
        """Note that the queue has been executed."""
        self.deny_blocking = False
        self.discard()
