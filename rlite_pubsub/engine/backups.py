"""SAVE, BGSAVE and LASTSAVE. With a target (`backup-to`), they mean that everything committed can be restored from the
target; without one, that it is on the disk, which happens soon anyway.

Another process does the work (rlite_pubsub/backup/) and reports its progress in a file; ringing its doorbell asks it to
bring the backup up to date.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.waits.alarm import CallLater
from rlite_pubsub.storage.commons import backup_state
from rlite_pubsub.storage.commons.backup_state import BELL, BackupState, folder_of
from rlite_pubsub.wakeups.doorbell import Ring, ring

if TYPE_CHECKING:
    from rlite_pubsub.storage.store import Store

MOMENT_SECONDS: Final = 0.002
"""The wait before the ring: both clocks count milliseconds, and what is reported then is of a later one than the
request."""


class Backups:
    """A server's view of the backups of its store."""

    def __init__(
        self, store: Store | None, settings: Settings, clock: Callable[[], float], call_later: CallLater
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._call_later = call_later
        self._asked_ms = 0  # by BGSAVE

    @property
    def are_wanted(self) -> bool:
        """True if there is a backup target."""
        return self._store is not None and bool(self._settings["backup-to"])

    @property
    def state(self) -> BackupState | None:
        """The last report of the process that follows the store; None if there is none."""
        return backup_state.read(self._store.folder) if self._store is not None else None

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def lag_ms(self, state: BackupState) -> int:
        """Return how many milliseconds ago the oldest commit that cannot be restored yet was made; 0 if all can be
        restored, -1 if nothing can. Raises StoreError."""
        if self._store is not None and state.commit == self._store.data.last_commit():
            return 0
        return max(0, self.now_ms() - state.as_of_ms) if state.commit >= 0 else -1

    def begin(self) -> None:
        """Ask for a backup of what is committed, without waiting for it."""
        self._call_later(0.0, self._begin)

    def _begin(self) -> None:
        """Ring the backup process in a turn after the commit of the turn that asked."""
        self._asked_ms = self.now_ms() + 1
        self._call_later(MOMENT_SECONDS, self._ring)

    def _ring(self) -> None:
        self.ring()

    def ring(self) -> bool:
        """Ring the backup process; return whether it heard."""
        assert self._store is not None
        return ring(folder_of(self._store.folder), BELL) in (Ring.RUNG, Ring.FULL)

    def is_under_way(self, state: BackupState) -> bool:
        """Return whether the backup that BGSAVE asked for is still outstanding."""
        is_to_come = state.as_of_ms < self._asked_ms and not self.has_failed(state, self._asked_ms)
        return state.is_snapshotting or is_to_come

    @staticmethod
    def has_failed(state: BackupState, since_ms: int) -> bool:
        """Return whether a backup has failed since then."""
        return bool(state.error) and state.error_ms >= since_ms
