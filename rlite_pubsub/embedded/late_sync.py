"""appendfsync everysec where no server is: what this process has committed to data.mdb is on the disk a second later.

A thread of its own does it, for no publisher must wait for a disk. It is there only while something is to be synced.
"""

from __future__ import annotations

import logging
import threading

from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.errors import StoreError

log = logging.getLogger("rlite_pubsub")

SYNC_SECONDS = 1.0


class LateSync:
    """Of one store. `note` is called by one thread at a time."""

    def __init__(self, data: Environment) -> None:
        self._data = data
        self._synced = data.last_commit()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def note(self) -> None:
        """Something may have been committed."""
        if self._thread is not None or self._data.durability != "everysec" or not self._is_due:
            return
        with self._lock:
            if self._thread is None and not self._is_over.is_set():
                thread = threading.Thread(target=self._run, name="rlite-pubsub-sync", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return  # the interpreter is on its way out: `close` does it
                self._thread = thread

    def close(self) -> None:
        """Sync what is left. Raises StoreError."""
        self._is_over.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        if self._data.durability == "everysec" and self._is_due:
            self._data.sync()

    @property
    def _is_due(self) -> bool:
        return self._data.last_commit() != self._synced

    def _run(self) -> None:
        while not self._is_over.wait(SYNC_SECONDS):
            try:
                commit = self._data.last_commit()
                self._data.sync()
                self._synced = commit
            except StoreError as failure:
                log.warning("Can't bring the store to the disk: %s", failure)
                continue
            with self._lock:
                if not self._is_due:
                    self._thread = None
                    return
