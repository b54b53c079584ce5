"""A server's part in the links of its store: one server of the store starts the process that has them
(links/process.py).

A lock file says which one; where that server ends, or is killed, another one takes over. Without links there is nothing
but a look at a number in shared memory.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.arguments.link_words import BadLink, read_link
from rlite_pubsub.server.companions.companion import Companion
from rlite_pubsub.server.listening import StartupError
from rlite_pubsub.storage.commons.link_state import Lock
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.links import Links
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.storage.store import Store

log: Final = logging.getLogger("rlite_pubsub")

RESTART_SECONDS: Final = 0.5
GRACE_SECONDS: Final = 3.0


class Linking:
    """One server's."""

    def __init__(self, store: Store, links: Links, settings: Settings) -> None:
        self._store = store
        self._links = links
        self._settings = settings
        note = store.incidents.note
        self._process = Companion("links", "rlite_pubsub.links.process", RESTART_SECONDS, note)
        self._lock: Lock | None = None

    @property
    def pid(self) -> int:
        """The id of the process that this server has started; 0: there is none."""
        return self._process.pid

    def start(self) -> None:
        """Have the store know the links of the configuration, in the place of those of the same names. Raises
        StartupError."""
        if not self._settings.links:
            return
        try:
            known = self._links.every()
            for words in self._settings.links.values():
                name, link = read_link(words)
                before = known.get(name)
                if before is not None:
                    link["is_paused"] = before["is_paused"]
                if link != before:
                    self._links.put(name, link)
        except (BadLink, StoreError) as failure:
            raise StartupError(f"Can't keep the links: {failure}") from failure

    def cron(self, now: float) -> None:
        """Start the process where it is wanted and nobody has, end it where it is not. Raises StoreError, OSError."""
        if not self._links.are_wanted:
            if self._lock is not None:
                self._let_go()
            return
        if self._lock is None:
            lock = Lock(self._store.folder, "server")
            if not lock.take():
                lock.close()
                return
            self._lock = lock
            self._process.begin({"dir": str(self._store.folder)})
        self._process.cron(now)

    def stop(self) -> None:
        """Leave nothing running."""
        if self._lock is not None:
            self._let_go()

    def _let_go(self) -> None:
        assert self._lock is not None
        self._process.end(GRACE_SECONDS)
        self._lock.close()
        self._lock = None
