"""Watching, reading and writing sockets: one poller for all, and a sender for each.

In a compiled package this is _wires.c, which reads while it polls: that saves two calls of C for each small request.
Otherwise it is the select and os modules, and connections read when called.
"""

from __future__ import annotations

import os
import select
import selectors
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeAlias

Reader: TypeAlias = Callable[[int, bytes | None], None]
"""Takes what has been read from a socket, nothing at its end; None with the event FAILED."""

Send: TypeAlias = Callable[[bytes | memoryview], int]
"""Writes to a socket, as much as it takes. Raises OSError; BlockingIOError if it takes nothing."""

READ_BYTES: Final = 16 * 1024
"""Read along of one socket: as Redis reads. If a socket has more, the callee reads by itself."""

MAX_EVENTS: Final = 1024
_READABLE: Final = 0x001
_WRITABLE: Final = 0x004
READ: Final = -1
"""Ready, instead of a descriptor: something has been read, and `take` has it."""
FAILED: Final = 1 << 30
"""An event that is none of epoll's: reading has failed. It is reported once."""


class Poller(Protocol):
    """Watches descriptors."""

    def register(self, fd: int, events: int) -> None:
        """Watch for these events."""

    def modify(self, fd: int, events: int) -> None:
        """Watch for other events."""

    def unregister(self, fd: int) -> None:
        """Watch no longer."""

    def read_along(self, fd: int, reader: Reader | None) -> None:
        """Read what has come as soon as it is seen, for this reader; None: do not. May be done, or not."""

    def poll(self, timeout_s: float | None, most: int, /) -> list[tuple[int, int]]:
        """Return which descriptors are ready for what, at most this many. None: wait forever."""
        ...

    def take(self) -> list[tuple[Reader, bytes | None]]:
        """Return what has been read, once."""
        ...

    def fileno(self) -> int:
        """The poller's own descriptor."""
        ...

    def close(self) -> None:
        """Let go of it."""


class PurePoller:
    """A poller that reads nothing, for Linux."""

    def __init__(self) -> None:
        epoll = select.epoll()
        self.poll = epoll.poll
        self.register = epoll.register
        self.modify = epoll.modify
        self.unregister = epoll.unregister
        self.fileno = epoll.fileno
        self.close = epoll.close

    def read_along(self, fd: int, reader: Reader | None) -> None:
        pass

    def take(self) -> list[tuple[Reader, bytes | None]]:
        return []


class SelectorPoller:
    """The same for every other system: macOS has kqueue. That a peer whom nobody reads from has closed is not seen."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, events: int) -> None:
        self.modify(fd, events)

    def modify(self, fd: int, events: int) -> None:
        wanted = (selectors.EVENT_READ if events & _READABLE else 0) | (
            selectors.EVENT_WRITE if events & _WRITABLE else 0
        )
        is_watched = fd in self._selector.get_map()
        if wanted and is_watched:
            self._selector.modify(fd, wanted)
        elif wanted:
            self._selector.register(fd, wanted)
        elif is_watched:
            self._selector.unregister(fd)

    def unregister(self, fd: int) -> None:
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def read_along(self, fd: int, reader: Reader | None) -> None:
        pass

    def poll(self, timeout_s: float | None, most: int, /) -> list[tuple[int, int]]:
        ready = self._selector.select(timeout_s)
        return [
            (
                key.fd,
                (_READABLE if events & selectors.EVENT_READ else 0)
                | (_WRITABLE if events & selectors.EVENT_WRITE else 0),
            )
            for key, events in ready[:most]
        ]

    def take(self) -> list[tuple[Reader, bytes | None]]:
        return []

    def fileno(self) -> int:
        descriptor: int = self._selector.fileno()
        return descriptor

    def close(self) -> None:
        self._selector.close()


def _mask(events: int) -> int:
    """Return these events in the numbers of the selectors module."""
    return (selectors.EVENT_READ if events & _READABLE else 0) | (selectors.EVENT_WRITE if events & _WRITABLE else 0)


def _events(mask: int) -> int:
    return (_READABLE if mask & selectors.EVENT_READ else 0) | (_WRITABLE if mask & selectors.EVENT_WRITE else 0)


def _pure_sender(fd: int) -> Send:
    return partial(os.write, fd)  # at two thirds of what a socket's own method costs


new_poller: Callable[[], Poller]
sender: Callable[[int], Send]
try:
    from rlite_pubsub.server import _wires
except ImportError:
    new_poller, sender = PurePoller if hasattr(select, "epoll") else SelectorPoller, _pure_sender
else:
    new_poller, sender = _wires.Poller, _wires.Sender
