"""Learning which keys other processes change, for the sessions of this one that track keys.

Laws kept here:
 2. track: write the record -> COMMIT -> reply. A process that changes a key after that finds the record, and says
    which key.
 3. CLEAR the bell -> look -> wait, bounded -> again. What was written is read in its order, and nothing of it twice.
A process that was away for so long that records are gone, or that hears that the changed keys are unknown, compares the
tracked keys with what was read; sessions that broadcast are told that any key may have changed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlite_pubsub.storage.commons import changed_keys
from rlite_pubsub.storage.commons.changed_keys import ALL_REMOVED, UNKNOWN
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.tracking.invalidation import TrackedKeys
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.pubsub.neighbours import Neighbours
    from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

_RECORD = "trackers", b""


class Hearing:
    """Learns which keys other processes have changed."""

    def __init__(
        self, store: Store, keyspace: Keyspace, hub: Hub, neighbours: Neighbours, tracked: TrackedKeys
    ) -> None:
        self._store = store
        self._keyspace = keyspace
        self._hub = hub
        self._neighbours = neighbours
        self._tracked = tracked
        self._is_recorded = False
        self._read_to = 0  # clients know what was changed up to this transaction
        hub.call_on_bell(self.look)

    def begin(self) -> None:
        """Have others announce the keys they change from now on, for a session that is about to track keys. Raises
        StoreError."""
        if not self._is_recorded:
            self._hub.record({_RECORD: 1})
            self._is_recorded = True
            self._store.routes.nudge()
            self._read_to = self._keyspace.last_commit()

    def look(self) -> None:
        """Pass on what others have changed since the last look. Never fails."""
        if not self._is_recorded:
            return
        try:
            self._look()
        except StoreError as failure:
            log.warning("Can't see which keys others have changed: %s", failure)

    def cron(self) -> None:
        """Look now and then, for the bell may lie; and take back the record when nobody tracks any more."""
        self.look()
        if self._is_recorded and not self._tracked.sessions:
            try:
                self._hub.record({_RECORD: 0})
            except StoreError as failure:
                log.debug("Can't yet remove the record of who tracks keys: %s", failure)
            else:
                self._is_recorded = False

    def _look(self) -> None:
        keyspace, tracked = self._keyspace, self._tracked
        turn = keyspace.turn
        if turn.txn is not None and not turn.writes:
            turn.end(commit=False)  # what is read from here on is as new as the bell
        if turn.failure is not None or keyspace.last_commit() == self._read_to:
            return
        txn = keyspace.reading()
        changes = changed_keys.since(txn, self._read_to)
        self._read_to = txn.id() - turn.writes
        own = self._neighbours.own
        is_known = changes.is_whole
        for row in changes.rows:
            if row.writer == own:
                continue
            if row.what == ALL_REMOVED:
                tracked.removed_elsewhere()
            is_known = is_known and row.what != UNKNOWN
            for name in row.names:
                tracked.changed_elsewhere(name, row.transaction)
        if not is_known:
            tracked.suspect_all()
