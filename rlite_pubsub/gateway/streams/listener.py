"""The session of one stream of channels or patterns: what is published to it waits here until the stream takes it.

Laws 7 and 8: beyond `spill-threshold` it waits in the session's mailbox on disk, in order, and within the limits of any
other subscriber.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from rlite_pubsub.engine.footprint import Footprint
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.pubsub.backlog import Backlog
from rlite_pubsub.pubsub.kinds import Kind

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine

READY = b"*1\r\n$5\r\nready\r\n"
SESSION_BYTES = 14 * 1024
"""What an idle stream costs, by measurement; for CLIENT LIST's tot-mem."""


class Listener(CommandSession):
    """The session of one stream."""

    __slots__ = ("_peer", "_timer", "_wake", "_waves", "backlog", "inbox", "inbox_bytes", "is_open")

    def __init__(self, engine: Engine, peer: str, user: bytes, waves: Waves) -> None:
        super().__init__(engine)
        self.user = user
        self._peer = peer
        self._waves = waves
        self._timer: asyncio.TimerHandle | None = None
        self._wake: asyncio.Future[None] | None = None
        self.backlog: Backlog | None = None
        self.inbox: deque[bytes] = deque()
        self.inbox_bytes = 0
        self.is_open = True
        self.authenticated = True  # by guard.py
        engine.sessions[self.id] = self

    def hold(self, kind: Kind, names: list[bytes]) -> None:
        """Subscribe; `READY` comes once that is committed, and something else where it can't be."""
        for name in names:
            self.hub.subscribe(self, kind, name)
        self.send(READY)
        self.hub.on_failed_commit(self._refuse)

    def _refuse(self, failure: Exception) -> None:
        self.outbox[:] = [part for part in self.outbox if part is not READY]
        self.close_now()

    def flush(self) -> None:
        self.dirty = False
        parts, self.outbox = self.outbox, []
        pressure = self.engine.pressure
        if not self.is_open:
            return
        if self.backlog is not None:
            pressure.pile_up(self, self.backlog, parts)
        else:
            self.inbox += parts
            self.inbox_bytes += sum(map(len, parts))
            if self.inbox_bytes > self.engine.settings["spill-threshold"]:
                self.backlog = pressure.begin(self)
        self._rouse()

    def take(self) -> list[bytes]:
        """What has come, oldest first, each part of it whole messages; empty if there is nothing."""
        if self.inbox:
            parts = list(self.inbox)
            self.inbox.clear()
            self.inbox_bytes = 0
            return parts
        backlog, pressure = self.backlog, self.engine.pressure
        if backlog is None:
            return []
        while backlog and not backlog.head:
            if not pressure.refill(self, backlog):
                return []
        parts = [bytes(part) for part in backlog.head]
        backlog.written(sum(map(len, parts)))
        if not backlog:
            self.backlog = None
            pressure.end(backlog)
        return parts

    async def wait(self, until: float) -> None:
        """For something to come, but no longer than until then; it may be less."""
        if self.inbox or self.backlog is not None or not self.is_open:
            return
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        if self._timer is None:
            self._timer = loop.call_at(until, self._ring)
        await self._wake

    def _ring(self) -> None:
        self._timer = None
        self._rouse()

    def _rouse(self, _: object = None) -> None:
        """Thousands may have been told something in this turn: each is woken when it is its turn."""
        waiting, self._wake = self._wake, None
        if waiting is not None:
            self._waves.wake((waiting,))

    def rouse_when_done(self, peer: asyncio.Future[None]) -> None:
        """Wake once the peer is gone."""
        peer.add_done_callback(self._rouse)

    @property
    def takes_more(self) -> bool:
        return self.backlog is None and self.is_open

    @property
    def address(self) -> str:
        return self._peer

    def footprint(self) -> Footprint:
        backlog = self.backlog
        in_memory = self.inbox_bytes + (backlog.memory_bytes if backlog is not None else 0)
        return Footprint(outbox=in_memory, total=SESSION_BYTES + in_memory)

    def resume(self) -> None:
        """It asks for nothing."""

    def close_after_reply(self) -> None:
        self.close_now()

    def close_now(self) -> None:
        """Leave nothing behind."""
        if not self.is_open:
            return
        self.is_open = False
        self.closing = True
        if self._timer is not None:
            self._timer.cancel()
        self.outbox.clear()
        backlog, self.backlog = self.backlog, None
        if backlog is not None:
            self.engine.pressure.end(backlog)
        self.engine.forget(self)
        self.hub.forget(self)
        self._rouse()
