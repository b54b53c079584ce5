"""The ACL log: who was denied what, newest first, equal denials within a minute counted in one entry."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING

from rlite_pubsub.protocol.replies import Reply

if TYPE_CHECKING:
    from rlite_pubsub.engine.settings.settings import Settings

GROUPING_SECONDS = 60.0
MAX_COMPARED = 10
"""How many of the newest entries are compared with a new one."""


class Denial:
    """An entry of ACL LOG."""

    __slots__ = ("client_info", "context", "count", "object", "reason", "time", "username")

    def __init__(
        self, reason: bytes, context: bytes, object: bytes, username: bytes, client_info: bytes, time: float
    ) -> None:
        self.count = 1
        self.reason = reason
        self.context = context
        self.object = object
        self.username = username
        self.client_info = client_info
        self.time = time

    def described(self, now: float) -> Reply:
        """Return the entry as ACL LOG shows it."""
        return {
            b"count": self.count,
            b"reason": self.reason,
            b"context": self.context,
            b"object": self.object,
            b"username": self.username,
            b"age-seconds": round(now - self.time, 3),
            b"client-info": self.client_info,
        }

    def equals(self, other: Denial) -> bool:
        """Return whether both count as one entry."""
        return self._subject == other._subject and abs(self.time - other.time) <= GROUPING_SECONDS

    def follow(self, other: Denial) -> None:
        """Count both as one entry."""
        self.count = other.count + 1

    @property
    def _subject(self) -> tuple[bytes, bytes, bytes, bytes]:
        return self.reason, self.context, self.object, self.username


class AclLog:
    """The last `acllog-max-len` denials."""

    def __init__(self, settings: Settings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self.entries: deque[Denial] = deque()

    def note(self, reason: bytes, context: bytes, object: bytes, username: bytes, client_info: bytes) -> None:
        """Add a denial."""
        new = Denial(reason, context, object, username, client_info, self._clock())
        for old in islice(self.entries, MAX_COMPARED):
            if old.equals(new):
                new.follow(old)
                self.entries.remove(old)
                self.entries.appendleft(new)
                return
        self.entries.appendleft(new)
        while len(self.entries) > self._settings["acllog-max-len"]:
            self.entries.pop()
