"""What SAVE, BGSAVE and LASTSAVE mean: with a target (`backup-to`), that all which was committed can be restored from
it; without one, that it is on the disk, which it is before long anyway.

Another process does it (rlite_pubsub/backup/), and tells by a file how far it has come; it is asked for the state of
now by its doorbell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.waits.waiter import CallLater
from rlite_pubsub.storage.commons import backup_state
from rlite_pubsub.storage.commons.backup_state import BELL, BackupState, folder_of
from rlite_pubsub.wakeups.doorbell import Ring, ring

if TYPE_CHECKING:
    from rlite_pubsub.storage.store import Store

MOMENT_SECONDS: Final = 0.002
"""The clocks of both count milliseconds: what is found behind this is of a later one than what was asked for."""


class Backups:
    """What a server knows of the backups of its store."""

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
        """Whether there is a target."""
        return self._store is not None and bool(self._settings["backup-to"])

    @property
    def state(self) -> BackupState | None:
        """What the process that follows the store reports, whoever started it; None if none ever did."""
        return backup_state.read(self._store.folder) if self._store is not None else None

    def now_ms(self) -> int:
        return int(self._clock() * 1000)

    def lag_ms(self, state: BackupState) -> int:
        """For how long something has been committed that cannot be restored; 0: nothing has. -1: nothing can be at
        all. Raises StoreError."""
        if self._store is not None and state.commit == self._store.data.last_commit():
            return 0
        return max(0, self.now_ms() - state.as_of_ms) if state.commit >= 0 else -1

    def begin(self) -> None:
        """Have what is committed brought away, and wait for nothing."""
        self._call_later(0.0, self._begin)

    def _begin(self) -> None:
        """In a turn behind the commit of the one that has asked."""
        self._asked_ms = self.now_ms() + 1
        self._call_later(MOMENT_SECONDS, self._ring)

    def _ring(self) -> None:
        self.ring()

    def ring(self) -> bool:
        """Whether anybody has heard it."""
        assert self._store is not None
        return ring(folder_of(self._store.folder), BELL) in (Ring.RUNG, Ring.FULL)

    def is_under_way(self, state: BackupState) -> bool:
        """Whether what BGSAVE has asked for is still to come."""
        is_to_come = state.as_of_ms < self._asked_ms and not self.has_failed(state, self._asked_ms)
        return state.is_snapshotting or is_to_come

    @staticmethod
    def has_failed(state: BackupState, since_ms: int) -> bool:
        """Whether it was tried without success since then."""
        return bool(state.error) and state.error_ms >= since_ms
