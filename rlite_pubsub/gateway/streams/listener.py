"""The session of one stream of channels or patterns: what is published to it waits here until the stream takes it.

Laws 7 and 8 are its outbox's (pubsub/outbox.py): it obeys the limits that any other subscriber does.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rlite_pubsub.engine.footprint import Footprint
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.gateway.streams.waves import Waves
from rlite_pubsub.pubsub.kinds import Kind
from rlite_pubsub.pubsub.outbox import TakenOutbox

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Instance

READY = b"*1\r\n$5\r\nready\r\n"
SESSION_BYTES = 14 * 1024
"""What an idle stream costs, by measurement; for CLIENT LIST's tot-mem."""


class Listener(CommandSession):
    """The session of one stream."""

    __slots__ = ("_peer", "_timer", "_wake", "_waves", "is_open")

    outbox: TakenOutbox

    def __init__(self, instance: Instance, peer: str, user: bytes, waves: Waves) -> None:
        super().__init__(instance, TakenOutbox(instance.pressure))
        self.user = user
        self._peer = peer
        self._waves = waves
        self._timer: asyncio.TimerHandle | None = None
        self._wake: asyncio.Future[None] | None = None
        self.is_open = True
        self.authenticated = True  # by guard.py
        instance.sessions[self.id] = self

    def hold(self, kind: Kind, names: list[bytes]) -> None:
        """Subscribe; `READY` comes once that is committed, and something else where it can't be."""
        for name in names:
            self.hub.subscribe(self, kind, name)
        self.send(READY)
        self.hub.on_failed_commit(self._refuse)

    def _refuse(self, failure: Exception) -> None:
        self.said[:] = [part for part in self.said if part is not READY]
        self.close_now()

    def take(self) -> list[bytes]:
        """What has come, oldest first, each part of it whole messages; empty if there is nothing."""
        return self.outbox.take(self)

    async def wait(self, until: float) -> None:
        """For something to come, but no longer than until then; it may be less."""
        if self.outbox.inbox or self.outbox.backlog is not None or not self.is_open:
            return
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        if self._timer is None:
            self._timer = loop.call_at(until, self._ring)
        await self._wake

    def _ring(self) -> None:
        self._timer = None
        self.rouse()

    def rouse(self) -> None:
        """Thousands may have been told something in this turn: each is woken when it is its turn."""
        waiting, self._wake = self._wake, None
        if waiting is not None:
            self._waves.wake((waiting,))

    def rouse_when_done(self, peer: asyncio.Future[None]) -> None:
        """Wake once the peer is gone."""
        peer.add_done_callback(lambda _: self.rouse())

    @property
    def takes_more(self) -> bool:
        return self.outbox.backlog is None and self.is_open

    @property
    def address(self) -> str:
        return self._peer

    def footprint(self) -> Footprint:
        in_memory = self.outbox.memory_bytes
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
        self.outbox.end()
        self.instance.forget(self)
        self.hub.forget(self)
        self.rouse()
