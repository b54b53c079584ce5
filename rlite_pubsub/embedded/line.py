"""A connection's replacement for a socket: requests go in, and bytes in wire format come out.

Bytes, because they are what is shared: a batch of messages is encoded and joined once for all who receive it, in this
process or another, can wait on disk, and is parsed in C. Requests are never bytes: they go to the command table as they
are.
"""

from __future__ import annotations

import os
import select
import sys
import time
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr
from redis.exceptions import ConnectionError

from rlite_pubsub.embedded.errors import UsedAfterFork
from rlite_pubsub.embedded.host import CLOSED, NO_OPTIONS, Host
from rlite_pubsub.embedded.options import StoreOptions
from rlite_pubsub.embedded.waking import Wake

if TYPE_CHECKING:
    from rlite_pubsub.engine.waits.giving_back import Taken

LOOKS: Final = 40
"""At most this many before a reader falls asleep: some 15 microseconds."""


_NOTHING: Final[list[Taken]] = []


@mypyc_attr(allow_interpreted_subclasses=True)
class Line:
    """One session of one client, as both ends of a socket would be."""

    def __init__(self, folder: str, options: StoreOptions = NO_OPTIONS) -> None:
        self.is_unread = False  # something was received and not read by the program
        self.is_answering = False  # the program waits for the reply to the last `ask`
        self.host = Host.open(folder, options)
        self.session = self.host.begin_session()
        self._pid = os.getpid()

    @property
    def is_held_up(self) -> bool:
        """True if a request waits for another process that is writing. It is answered once its patience is over:
        sending it again would only restart the wait."""
        from rlite_pubsub.engine.waits.writer_wait import HELD_UP  # who only publishes needs none of it

        return self.session.blocked is HELD_UP

    def sendall(self, requests: list[list[bytes]]) -> None:
        """Execute requests as one turn. Raises ConnectionError if the session was closed."""
        self.check()
        if not self.session.is_open:
            self.check_end()
            raise ConnectionError(CLOSED)
        self.is_answering = False
        self.session.handed = _NOTHING
        self.host.execute(self.session, requests)

    def check(self) -> None:
        """Raise if this process did not make it."""
        if not self.host.is_open and self._pid != os.getpid():
            raise UsedAfterFork(str(self.host.store.folder))

    def leave_unread(self, is_unread: bool) -> None:
        """The program has read all that was received, or not."""
        self.is_unread = is_unread

    def check_end(self) -> None:
        """Raise if the session has ended in a way after which it must not be restarted, or not silently."""
        ended_by = self.session.take_end()
        if ended_by is not None:
            raise ended_by

    def close(self) -> None:
        """Leave. In a forked child the parent's session is left alone."""
        host = self.host
        if host.is_open:
            self.session.left_in_peace = not self.is_unread and sys.exception() is None
            if self.is_answering:
                self.session.was_interrupted()
            host.end_session(self.session)
        host.close()


@mypyc_attr(allow_interpreted_subclasses=True)
class ThreadLine(Line):
    """A line whose reader is a thread, which may wait."""

    def __init__(self, folder: str, options: StoreOptions = NO_OPTIONS) -> None:
        super().__init__(folder, options)
        self._wake: Wake | None = None
        self._poll: select.poll | None = None
        self._polled_bell = False
        self._is_warm = False  # something has come since the last wait
        self._is_closed = False

    def ask(self, request: list[bytes]) -> bytes:
        """`sendall` of one request, and what it is answered at once; nothing if the answer must be waited for. Raises
        ConnectionError if the session was closed."""
        host, session = self.host, self.session
        with host.lock:
            if not session.is_open:
                self.sendall([request])  # which says why not
            session.handed = _NOTHING
            self.is_answering = True
            host.execute(session, [request])
            return session.take()

    def receive(self, timeout_s: float | None) -> bytes | None:
        """Return what has come; nothing (b"") if the session was closed, None on a timeout. A timeout of None waits
        forever."""
        host, session = self.host, self.session
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        rung = True
        while True:
            self.check()
            with host.lock:
                data = session.take()
                if not data:
                    host.look(surely=not rung)
                    data = session.take()
                if data:
                    self._is_warm = True
                    return data
                if not session.is_open:
                    self.check_end()
                    return b""
                left_s = host.patience_s()
                if deadline is not None:
                    left_s = min(left_s, deadline - time.monotonic())
                    if left_s <= 0 and time.monotonic() >= deadline:
                        return None
                poll = self._polled()
                assert self._wake is not None
                session.await_input(self._wake.set)
            try:
                rung = self._wait(poll, left_s)
            finally:
                session.cease_waiting()
            self._wake.clear()

    def _wait(self, poll: select.poll, seconds: float) -> bool:
        """Wait; return False on a timeout. Messages come in bursts: the first wait after one begins awake, because
        waking a sleeping reader costs its publisher more than a look costs the reader."""
        if self.host.membership.post.is_awake:
            os.sched_yield()  # its publisher may be waiting for this very core
        elif self._is_warm:
            self._is_warm = False
            for _ in range(LOOKS):
                if poll.poll(0):
                    return True
        return bool(poll.poll(max(seconds, 0.0) * 1000)) or seconds <= 0

    def _polled(self) -> select.poll:
        bell = self.host.membership.bell
        if self._poll is None:
            self._poll = select.poll()
            self._wake = Wake()
            self._poll.register(self._wake, select.POLLIN)
        if bell is not None and not self._polled_bell:
            self._polled_bell = True
            self._poll.register(bell, select.POLLIN)
        return self._poll

    def shutdown(self, how: int) -> None:
        """Sockets have it: redis-py calls it before `close`."""

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        super().close()
        if self.host.is_giving_back:
            self.host.give_back()
