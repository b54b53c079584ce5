"""What sockets are watched, read and written with: one poller for all, and something to send by for each.

Where this package was compiled it is _wires.c, which reads along while it looks: what small requests pass then is two
calls of C less for each. Else it is the select and os modules, and everybody reads when called.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, TypeAlias

Reader: TypeAlias = Callable[[bytes | None], None]
"""Takes what has been read from a socket: nothing at its end, None if it has failed (which is told once)."""

Send: TypeAlias = Callable[[bytes | memoryview], int]
"""Writes to a socket, as much as it takes. Raises OSError; BlockingIOError if it takes nothing."""

READ_BYTES: Final = 16 * 1024
"""Read along of one socket: as Redis reads. Of one that has more to say, whoever is called reads by itself."""

MAX_EVENTS: Final = 1024


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

    def poll(self, timeout_s: float | None) -> tuple[list[tuple[Reader, bytes | None]], list[tuple[int, int]]]:
        """What has been read, and which other descriptors are ready for what. None: wait for ever."""
        ...

    def fileno(self) -> int:
        """Of the poller itself."""
        ...

    def close(self) -> None:
        """Let go of it."""


class PurePoller:
    """A poller that reads nothing."""

    def __init__(self) -> None:
        epoll = select.epoll()
        self._poll = epoll.poll
        self.register = epoll.register
        self.modify = epoll.modify
        self.unregister = epoll.unregister
        self.fileno = epoll.fileno
        self.close = epoll.close

    def read_along(self, fd: int, reader: Reader | None) -> None:
        pass

    def poll(self, timeout_s: float | None) -> tuple[list[tuple[Reader, bytes | None]], list[tuple[int, int]]]:
        return [], self._poll(timeout_s, MAX_EVENTS)


def _pure_sender(fd: int) -> Send:
    return partial(os.write, fd)  # at two thirds of what a socket's own method costs


new_poller: Callable[[], Poller]
sender: Callable[[int], Send]
try:
    from rlite_pubsub.server import _wires
except ImportError:
    new_poller, sender = PurePoller, _pure_sender
else:
    new_poller, sender = _wires.Poller, _wires.Sender
