"""Turns of the event loop: all that is readable is read and executed, then the hub ends the turn.

The sockets are watched by a poller of our own, which the event loop (uvloop or asyncio) watches in turn. So one
callback sees everything that became ready, which is what makes a turn's one commit and one write for each session
possible; and the gateway's HTTP server, timers and signals live in the same loop.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger("rlite_pubsub")

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
PEER_CLOSED = select.EPOLLRDHUP
MAX_EVENTS = 1024
MAX_TURNS = 16
"""Turns in a row before the event loop has its own turn."""


class Watched(Protocol):
    """Something with a descriptor in the poller."""

    def on_ready(self, events: int) -> None:
        """The descriptor is ready. May raise only what is our own fault."""

    def on_failure(self) -> None:
        """`on_ready` has raised: end what cannot go on."""


class Turns:
    """The poller, and what happens once it has something."""

    def __init__(self, loop: asyncio.AbstractEventLoop, end_turn: Callable[[], None]) -> None:
        self._loop = loop
        self._end_turn = end_turn
        self._poller = select.epoll()
        self._watched: dict[int, Watched] = {}
        self._ending = False
        self._poll = self._poller.poll
        loop.add_reader(self._poller.fileno(), self._on_ready)

    def watch(self, fd: int, watched: Watched, events: int = READABLE) -> None:
        """Call `watched.on_ready` whenever `fd` is ready."""
        self._watched[fd] = watched
        self._poller.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        """Watch for other events from now on."""
        self._poller.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Watch no longer. To be called before `fd` is closed."""
        if self._watched.pop(fd, None) is not None:
            self._poller.unregister(fd)

    def soon(self) -> None:
        """Something was said outside a turn (by a timer): end a turn as soon as the loop comes round."""
        if not self._ending:
            self._ending = True
            self._loop.call_soon(self._end_extra_turn)

    def close(self) -> None:
        """Let go of the poller."""
        self._loop.remove_reader(self._poller.fileno())
        self._poller.close()

    def _on_ready(self) -> None:
        """Take turns until nothing is ready: each saves a round of the loop outside. But others live in that loop."""
        poll, watched = self._poll, self._watched
        for _ in range(MAX_TURNS):
            ready = poll(0, MAX_EVENTS)
            if not ready:
                return
            for fd, events in ready:
                target = watched.get(fd)
                if target is not None:
                    try:
                        target.on_ready(events)
                    except Exception:
                        log.exception("Unexpected failure while serving descriptor %d", fd)
                        target.on_failure()
            self._end_turn()

    def _end_extra_turn(self) -> None:
        self._ending = False
        self._end_turn()
