"""A store, or its disk, that is full: a line in the log when it begins and one when it ends, and an incident.

Everybody whose write is refused is told why; this is for whoever looks after the server.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rlite_pubsub.storage.errors import DiskFull, StoreError

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Environment
    from rlite_pubsub.storage.incidents import Incidents

log: Final = logging.getLogger("rlite_pubsub")

CODE: Final = "store_was_full"
REST_S: Final = 5.0
"""A store at its limit has a little room every now and then, for the next write: if that lasts so long, it is said."""


class Fullness:
    """Watches the environments of one store."""

    def __init__(self, environments: Sequence[Environment], incidents: Incidents) -> None:
        self._environments = environments
        self._incidents = incidents
        self._full_since: dict[str, float] = {}  # by file
        self._why: dict[str, str] = {}
        self._free_since: dict[str, float] = {}  # of these, those that have room just now

    def look(self, now: float) -> None:
        """Called by the cron."""
        for environment in self._environments:
            name = environment.path.name
            full = environment.room.full or environment.room.lack()
            if full is not None:
                self._free_since.pop(name, None)
                if name not in self._full_since:
                    self._full_since[name] = now
                    self._begin(name, full)
            elif name in self._full_since:
                free_since = self._free_since.setdefault(name, now)
                if not free_since <= now < free_since + REST_S:
                    self._end(name, free_since - self._full_since.pop(name))
                    del self._free_since[name]

    def _begin(self, name: str, full: StoreError) -> None:
        log.warning("Writes are refused: %s. Reading and deleting go on.", full)
        self._why[name] = "The disk was full" if isinstance(full, DiskFull) else "The store was at its quota"
        self._incidents.note(CODE, f"{self._why[name]}, and writes were refused", (name.encode(),))

    def _end(self, name: str, seconds: float) -> None:
        log.warning("Writes are accepted again: %s has room, after %.0f seconds without.", name, max(0.0, seconds))
        told = f"{self._why.pop(name)}, and writes were refused for {max(0.0, seconds):.0f} seconds"
        self._incidents.note(CODE, told, (name.encode(),), 0)
