"""A server's backup: the process that follows its store and brings every change to `backup-to` (backup/shipper.py).

It costs a server that has none nothing, for nothing of it is imported.
"""

from __future__ import annotations

import logging
import os

from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.server.companions.companion import Companion
from rlite_pubsub.server.listening import StartupError
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

RESTART_SECONDS = 1.0
"""After the process has died by itself."""
LOOK_SECONDS = 2.0
GRACE_SECONDS = 6.0
"""It may bring away what was committed last."""


class Shipping:
    """Keeps the backup process of one server running."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        note = store.incidents.note
        self._shipper = Companion("backup", "rlite_pubsub.backup.shipper", RESTART_SECONDS, note)
        self._looked_at = 0.0

    def start(self) -> None:
        """Follow the store, if that is wanted. Raises StartupError."""
        url = self._settings["backup-to"].decode()
        if not url:
            return
        from rlite_pubsub.backup import room
        from rlite_pubsub.cold.places import open_place
        from rlite_pubsub.extras import missing

        try:
            room.check_outside(open_place(url, os.getcwd()), self._store.folder)
        except ImportError as failure:
            raise StartupError(missing("backup-to a bucket", "cold")) from failure
        except StoreError as failure:
            raise StartupError(f"backup-to: {failure}") from failure
        words = {
            "dir": str(self._store.folder),
            "url": url,
            "base": os.getcwd(),
            "durability": self._store.data.durability,
            "quota_bytes": self._store.data.quota_bytes,
        }
        self._shipper.begin(words | self._plan())
        for name in ("backup-interval", "backup-retain"):
            self._settings.on_change(name, lambda _: self._shipper.tell(self._plan()))

    def _plan(self) -> dict[str, object]:
        return {"interval_s": self._settings["backup-interval"], "retain_s": self._settings["backup-retain"]}

    def cron(self, now: float) -> None:
        """Begin again where the process has died, or is stopped and holds pages (law 10). Raises StoreError."""
        self._shipper.cron(now)
        if self._shipper.pid and not self._looked_at <= now < self._looked_at + LOOK_SECONDS:
            self._looked_at = now
            if any(old.process == self._shipper.pid for old in self._store.data.account.old_readers()):
                log.warning("The backup process %d is stopped: killing it.", self._shipper.pid)
                self._shipper.kill()

    def stop(self) -> None:
        """Leave nothing running; what was committed is brought away, if that is a matter of seconds."""
        self._shipper.end(GRACE_SECONDS)
