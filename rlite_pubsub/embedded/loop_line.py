"""A line whose reader is a task of an event loop: it has the face of asyncio's StreamReader and StreamWriter."""

from __future__ import annotations

import asyncio
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING

from rlite_pubsub.embedded.host import BOUND_SECONDS, GIVE_BACK_LOOK_S, NO_OPTIONS, Host
from rlite_pubsub.embedded.line import Line
from rlite_pubsub.embedded.options import StoreOptions

if TYPE_CHECKING:
    from rlite_pubsub.wakeups.doorbell import Doorbell


class BellWatch:
    """Waits for the doorbell of one host in one event loop, on behalf of all lines that live there."""

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop) -> None:
        self._host = host
        self._loop = loop
        self._thread = threading.get_ident()
        self._lines = 0
        self._bell: Doorbell | None = None
        self._descriptor = -1
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = 0.0  # of the timer; uvloop's does not tell, where it is due at once

    @classmethod
    def of(cls, host: Host) -> BellWatch:
        """Return the one of this host in the running loop."""
        loop = asyncio.get_running_loop()
        watches = _watches.setdefault(loop, {})
        watch = watches.get(host)
        if watch is None:
            watch = watches[host] = cls(host, loop)
        return watch

    def enter(self) -> None:
        """Count one line more."""
        self._lines += 1

    def leave(self) -> None:
        """Count one line less; without any nothing is watched."""
        self._lines -= 1
        if not self._lines and not self._loop.is_closed():
            if threading.get_ident() == self._thread:
                self._stop()
            else:
                self._loop.call_soon_threadsafe(self._stop)

    def look_until_given_back(self) -> None:
        """What a line that was closed has left may wait for another process's write, and no line waits with it."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._look_again)

    def _look_again(self) -> None:
        if self._host.is_giving_back:
            self._host.look()
            self._loop.call_later(GIVE_BACK_LOOK_S, self._look_again)

    def begin_wait(self) -> None:
        """A task is going to wait: its wait must end when the bell is rung, when a timer is due, and now and then."""
        bell = self._host.membership.bell
        if bell is not self._bell and bell is not None:
            self._bell = bell
            self._descriptor = bell.fileno()
            self._loop.add_reader(self._descriptor, self._host.look)
        patience_s = self._host.patience_s()
        if self._timer is None or self._due_at > self._loop.time() + patience_s:
            self._set_timer(patience_s)

    def wake(self, waiting: asyncio.Future[None]) -> None:
        """End a wait, from whatever thread."""
        if threading.get_ident() == self._thread:
            _end(waiting)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_end, waiting)

    def _set_timer(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._due_at = self._loop.time() + seconds
        self._timer = self._loop.call_later(seconds, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._lines and self._host.is_open:
            self._host.look(surely=True)
            self._set_timer(min(BOUND_SECONDS, self._host.patience_s()))

    def _stop(self) -> None:
        if self._lines:
            return  # another came meanwhile
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            self._bell, self._descriptor = None, -1
        watches = _watches.get(self._loop)
        if watches is not None:
            watches.pop(self._host, None)


class LoopLine(Line):
    """One session of one client of the running loop."""

    def __init__(self, folder: str, options: StoreOptions = NO_OPTIONS) -> None:
        super().__init__(folder, options)
        self._watch = BellWatch.of(self.host)
        self._watch.enter()
        self._is_closed = False

    # -- as a StreamReader

    async def read(self, size: int = -1) -> bytes:
        """Return what has come, however much it is; nothing if the session was closed. A wait may be cancelled."""
        host, session = self.host, self.session
        while True:
            self.check()
            with host.lock:
                data = session.take()
                if not data:
                    host.look()
                    data = session.take()
                if data or not session.is_open:
                    if not data:
                        self.check_end()
                    return data
                waiting = self._await_input()
            await self._end_of(waiting)

    async def pass_line(self) -> None:
        """Return once no request of it waits for another process's write any more."""
        session = self.session
        while True:
            with self.host.lock:
                if not self.is_held_up or session.outbox.inbox or not session.is_open:
                    return
                waiting = self._await_input()
            await self._end_of(waiting)

    def _await_input(self) -> asyncio.Future[None]:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.session.await_input(partial(self._watch.wake, waiting))
        return waiting

    async def _end_of(self, waiting: asyncio.Future[None]) -> None:
        try:
            self._watch.begin_wait()
            await waiting
        finally:
            self.session.cease_waiting()

    def at_eof(self) -> bool:
        """Return whether it is closed, with nothing left to read."""
        return not self.session.is_open and not self.session.outbox.inbox

    @property
    def _buffer(self) -> bool:
        """redis-py looks here for what has come and is not read: a connection with that, or with a request that is not
        answered yet, is not for use again."""
        return bool(self.session.outbox.inbox) or self.session.is_owed_an_answer

    # -- as a StreamWriter

    def writelines(self, requests: list[list[bytes]]) -> None:
        """Execute requests as one turn."""
        self.sendall(requests)

    async def drain(self) -> None:
        """All is executed already."""

    async def wait_closed(self) -> None:
        """Return at once: it is closed."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Return the default: there is no socket."""
        return default

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._watch.leave()
        super().close()
        if self.host.is_giving_back:
            self._watch.look_until_given_back()


def _end(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


_watches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Host, BellWatch]] = weakref.WeakKeyDictionary()
