"""A connection whose reader waits with a poller of its own, among other descriptors: it has a `fileno` like a socket's.

The descriptor is readable when there may be something to read, in the way of a doorbell: it may lie, in either
direction. If it is readable, ask `can_read` first; while waiting, call `Host.look` now and then, within
`Host.patience_s`, for timers are nobody's descriptor.
"""

from __future__ import annotations

import os
import selectors
import weakref

from rlite_pubsub.embedded.connection import StoreConnection
from rlite_pubsub.embedded.errors import UsedAfterFork
from rlite_pubsub.embedded.host import NO_OPTIONS
from rlite_pubsub.embedded.line import ThreadLine
from rlite_pubsub.embedded.options import StoreOptions


class Either:
    """One descriptor, readable while one of several is. A forked child has no copy of it: as long as that lived,
    a poller would see it after it was closed here. (It may see it for a moment, until a child that has just been
    forked gets the processor.)"""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        _open.add(self)

    def fileno(self) -> int:
        return self._selector.fileno()

    def add(self, descriptor: int) -> None:
        if descriptor not in self._selector.get_map():
            self._selector.register(descriptor, selectors.EVENT_READ)

    def close(self) -> None:
        self._selector.close()
        _open.discard(self)


_open: weakref.WeakSet[Either] = weakref.WeakSet()


def _close_in_child() -> None:
    for either in list(_open):
        either.close()


os.register_at_fork(after_in_child=_close_in_child)


class PolledLine(ThreadLine):
    """A line with a descriptor, for programs that wait for more than one thing."""

    def __init__(self, folder: str, options: StoreOptions = NO_OPTIONS) -> None:
        super().__init__(folder, options)
        self._either = Either()
        self._has_left = False

    def fileno(self) -> int:
        """Return the descriptor to poll for reading."""
        self._arm()
        return self._either.fileno()

    def receive(self, timeout_s: float | None) -> bytes | None:
        try:
            return super().receive(timeout_s)
        finally:
            self._arm()

    def _arm(self) -> None:
        """Have the descriptor readable if something waits already, else from when something comes."""
        host, session = self.host, self.session
        if self._has_left or not host.is_open:
            return
        with host.lock:
            self._polled()
            wake, bell, outbox = self._wake, host.membership.bell, session.outbox
            assert wake is not None
            self._either.add(wake.fileno())
            if bell is not None:
                self._either.add(bell.fileno())
            if outbox.inbox or outbox.backlog is not None or not session.is_open:
                wake.set()
            else:
                wake.clear()
                session.await_input(wake.set)

    def close(self) -> None:
        if not self._has_left:
            self._has_left = True
            self.session.cease_waiting()
            self._either.close()
        super().close()


class PolledConnection(StoreConnection):
    """redis-py's connection for such a reader."""

    def _connect(self) -> ThreadLine:
        if self.pid != os.getpid():
            raise UsedAfterFork(self.path)
        return PolledLine(self.path, self._store_options)
