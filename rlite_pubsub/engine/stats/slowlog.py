"""The slow log: the last `slowlog-max-len` requests that took `slowlog-log-slower-than` microseconds or longer.

Both settings are live. Of a request only 32 arguments are kept, and 128 bytes of each. A command with the flag
`skip_slowlog` is never kept, because its arguments may be secret.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.table import Command

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.settings.settings import Settings

MAX_ARGUMENTS: Final = 32
MAX_ARGUMENT_BYTES: Final = 128

_NEVER: Final = 1 << 60
COARSE_US: Final = 1000
"""A coarse log keeps nothing quicker; latency spikes, which are counted in milliseconds, are longer, too."""


@dataclass(frozen=True, slots=True)
class SlowRequest:
    """One entry of the log."""

    id: int
    time: int
    duration_us: int
    args: list[bytes]
    address: bytes
    name: bytes


class SlowLog:
    """The newest slow requests, newest first."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._next_id = 0
        self.entries: deque[SlowRequest] = deque()
        self._slower_than_us = _NEVER
        self._max_len = 0
        self.coarse = True
        """True if very quick requests need not be shown to it one by one."""
        settings.follow(("slowlog-log-slower-than", "slowlog-max-len"), self._configure)

    def _configure(self) -> None:
        slower_than_us = self._settings["slowlog-log-slower-than"]
        self._slower_than_us = slower_than_us if slower_than_us >= 0 else _NEVER
        self.coarse = self._slower_than_us >= COARSE_US
        self._max_len = self._settings["slowlog-max-len"]
        self._trim()

    def note(self, session: Client, command: Command, args: list[bytes], duration_us: int) -> None:
        """Keep a request if it was slow."""
        if duration_us < self._slower_than_us or "skip_slowlog" in command.flags:
            return
        entry = SlowRequest(
            self._next_id, int(self._clock()), duration_us, outline(args), session.address.encode(), session.name
        )
        self._next_id += 1
        self.entries.appendleft(entry)
        self._trim()

    def _trim(self) -> None:
        while len(self.entries) > self._max_len:
            self.entries.pop()


def outline(args: list[bytes]) -> list[bytes]:
    """Return the arguments, cut short where they are too long or too many, saying by how much."""
    shown = args if len(args) <= MAX_ARGUMENTS else args[: MAX_ARGUMENTS - 1]
    outlined = [
        arg
        if len(arg) <= MAX_ARGUMENT_BYTES
        else b"%b... (%d more bytes)" % (arg[:MAX_ARGUMENT_BYTES], len(arg) - MAX_ARGUMENT_BYTES)
        for arg in shown
    ]
    if shown is not args:
        outlined.append(b"... (%d more arguments)" % (len(args) - len(shown)))
    return outlined


# -- SLOWLOG
