"""Turns of the event loop: all that is readable is read and executed, then the hub ends the turn.

The sockets are watched by a poller of our own, which reads along where it can (wires.py). So one look sees everything
that became ready, which is what makes a turn's one commit and one write for each session possible. The gateway's HTTP
server, timers and signals live in the event loop of the same thread, which waits in our poller where it can
(event_loop.py) and else watches it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic
from typing import Final, Protocol

from rlite_pubsub.server.event_loop import TurnLoop
from rlite_pubsub.server.wires import FAILED, MAX_EVENTS, READ, Poller, Reader, new_poller

log: Final = logging.getLogger("rlite_pubsub")

READABLE: Final = 0x001  # EPOLLIN, and so on: Linux's numbers, which a compiler can see
WRITABLE: Final = 0x004
PEER_CLOSED: Final = 0x2000
MAX_TURNS: Final = 16
"""Turns in a row before the event loop has its own turn."""


class Watched(Protocol):
    """Something with a descriptor in the poller."""

    def on_ready(self, events: int) -> None:
        """The descriptor is ready. May raise only what is our own fault."""

    def on_failure(self) -> None:
        """`on_ready` has raised: end what cannot go on."""


class Talker(Protocol):
    """Something whose descriptor the poller may read from."""

    fd: int  # negative once it is closed

    def on_ready(self, events: int, data: bytes | None = None) -> None:
        """React as in `Watched`; with the data, if it was read already."""

    def on_failure(self) -> None:
        """React as in `Watched`."""


class HeldInCommon(Protocol):
    """The commons of all processes of the store."""

    hint: memoryview[int]
    seen: int

    def look_around(self) -> None:
        """Go by what others have changed. Never fails."""


class Turns:
    """The poller, and what happens once it has something."""

    def __init__(self, loop: asyncio.AbstractEventLoop, end_turn: Callable[[], None]) -> None:
        self._loop = loop
        self._end_turn = end_turn
        self._poller: Poller = new_poller()
        self._watched: dict[int, Watched] = {}
        self._on_ready_of: dict[int, Callable[[int], None]] = {READ: self._execute_read}  # their methods
        self._read: list[tuple[Reader, bytes | None]] = []  # in this turn, by the poller
        self._executed = 0  # of it
        self._unheard: list[Talker] = []  # till the end of this turn
        self._ending = False
        self._commons: HeldInCommon | None = None
        self._poll = self._poller.poll
        self._selector = loop.selector if isinstance(loop, TurnLoop) else None
        self._loop_fd = -1
        if self._selector is None:
            loop.add_reader(self._poller.fileno(), self._on_ready)
        else:
            self._loop_fd = self._selector.fileno()
            self._poller.register(self._loop_fd, READABLE)
            self._selector.wait = self._wait

    def watch(self, fd: int, watched: Watched, events: int = READABLE) -> None:
        """Call `watched.on_ready` whenever `fd` is ready."""
        self._watched[fd] = watched
        self._on_ready_of[fd] = watched.on_ready
        self._poller.register(fd, events)

    def read_along(self, talker: Talker) -> None:
        """Read what it says in advance, where that can be done."""
        self._poller.read_along(talker.fd, talker.on_ready)

    def leave_unread(self, talker: Talker) -> None:
        """Leave reading to its `on_ready` from now on."""
        self._poller.read_along(talker.fd, None)

    def change(self, fd: int, events: int) -> None:
        """Watch for other events from now on."""
        self._poller.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Watch no longer. To be called before `fd` is closed."""
        if self._watched.pop(fd, None) is not None:
            del self._on_ready_of[fd]
            self._poller.read_along(fd, None)
            self._poller.unregister(fd)

    def go_by(self, commons: HeldInCommon | None) -> None:
        """Have the commons looked at before the requests of a turn, if they have changed."""
        self._commons = commons

    def take_beside(self, is_meant: Callable[[object], bool]) -> None:
        """Call those that are meant and ready, in the middle of a turn, which goes on afterwards."""
        ready = self._poll(0, MAX_EVENTS)
        read = self._read[self._executed :] + self._poller.take()
        left: list[tuple[Reader, bytes | None]] = []
        self._read, self._executed = left, 0
        for reader, data in read:
            talker = _talker(reader)
            if is_meant(talker):
                self._pass_on(reader, data)
            else:
                left.append((reader, data))
                self.leave_unread(talker)  # or all that it says would be held here
                self._unheard.append(talker)
        for fd, events in ready:
            watched = self._watched.get(fd)
            if watched is not None and is_meant(watched):
                try:
                    watched.on_ready(events)
                except Exception:
                    log.exception("Unexpected failure while serving descriptor %d", fd)
                    if fd in self._watched:
                        watched.on_failure()

    def soon(self) -> None:
        """End a turn soon: something was sent outside a turn (by a timer)."""
        if not self._ending:
            self._ending = True
            self._loop.call_soon(self._end_extra_turn)

    def close(self) -> None:
        """Let go of the poller."""
        if self._selector is None:
            self._loop.remove_reader(self._poller.fileno())
        else:
            self._selector.wait = None
        self._poller.close()

    def _on_ready(self) -> None:
        """Take turns until nothing is ready: each saves a round of the loop outside. But others live in that loop."""
        for _ in range(MAX_TURNS):
            ready = self._poll(0, MAX_EVENTS)
            if not ready:
                return
            self._take(ready)

    def _wait(self, timeout_s: float | None) -> None:
        """Take turns until the loop is wanted, or the time is over."""
        selector = self._selector
        assert selector is not None
        deadline = monotonic() + timeout_s if timeout_s is not None else 0.0
        is_wanted = False
        while not is_wanted:
            ready = self._poll(timeout_s, MAX_EVENTS)
            if not ready:
                return
            try:
                is_wanted = self._take(ready) or selector.is_wanted
            except Exception:
                log.exception("Unexpected failure at the end of a turn")
            if timeout_s is not None:
                timeout_s = deadline - monotonic()
                if timeout_s <= 0:
                    return

    def _take(self, ready: list[tuple[int, int]]) -> bool:
        """Take one turn. Whether the loop's own descriptors are ready, too."""
        on_ready_of = self._on_ready_of
        is_wanted = False
        commons = self._commons
        if commons is not None and commons.hint[2] != commons.seen:
            commons.look_around()
        for fd, events in ready:
            on_ready = on_ready_of.get(fd)
            if on_ready is not None:
                try:
                    on_ready(events)
                except Exception:
                    log.exception("Unexpected failure while serving descriptor %d", fd)
                    if fd in self._watched:
                        self._watched[fd].on_failure()
            elif fd == self._loop_fd:
                is_wanted = True
        self._end_turn()
        return is_wanted

    def _execute_read(self, _events: int) -> None:
        """Hand what the poller has read to the connection that it was read for."""
        self._read, self._executed = self._poller.take(), 0
        while self._executed < len(self._read):  # a script that takes long executes others' meanwhile
            reader, data = self._read[self._executed]
            self._executed += 1
            self._pass_on(reader, data)
        self._read, self._executed = [], 0
        if self._unheard:
            unheard, self._unheard = self._unheard, []
            for talker in unheard:
                if talker.fd >= 0:
                    self.read_along(talker)

    def _pass_on(self, reader: Reader, data: bytes | None) -> None:
        try:
            reader(READABLE if data is not None else FAILED, data)
        except Exception:
            log.exception("Unexpected failure while serving what was read")
            _talker(reader).on_failure()

    def _end_extra_turn(self) -> None:
        self._ending = False
        self._end_turn()


def _talker(reader: Reader) -> Talker:
    """Return the object that this method belongs to."""
    talker: Talker = reader.__self__  # type: ignore[attr-defined]
    return talker
