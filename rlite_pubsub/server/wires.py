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

Reader: TypeAlias = Callable[[int, bytes | None], None]
"""Takes what has been read from a socket, nothing at its end; None with the event FAILED."""

Send: TypeAlias = Callable[[bytes | memoryview], int]
"""Writes to a socket, as much as it takes. Raises OSError; BlockingIOError if it takes nothing."""

READ_BYTES: Final = 16 * 1024
"""Read along of one socket: as Redis reads. Of one that has more to say, whoever is called reads by itself."""

MAX_EVENTS: Final = 1024
READ: Final = -1
"""Ready, instead of a descriptor: something has been read, and `take` has it."""
FAILED: Final = 1 << 30
"""An event that is none of epoll's: reading has failed. It is told once."""


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
        """Which descriptors are ready for what, at most so many. None: wait for ever."""
        ...

    def take(self) -> list[tuple[Reader, bytes | None]]:
        """What has been read, once."""
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
