"""Fields of hashes whose time is over: removed by the next command that comes to their hash, and in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.storage.keys import fields, key_records

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.keyspace.keyspace import Keyspace

_AT_ONCE = 1000
"""So many fields of one hash go at most at a time: the others are not shown."""


class FieldExpiry:
    """Of one engine."""

    def __init__(self, keyspace: Keyspace, notifications: Notifications, stats: Stats) -> None:
        self._keyspace = keyspace
        self._notifications = notifications
        self._stats = stats

    def is_due(self, found: Hash) -> bool:
        """Whether any of its fields' time is over, and they may be removed."""
        return self._keyspace.times.may_expire and found.due_ms <= self._keyspace.clock_ms()

    def take(self, database: int, name: bytes) -> Hash | None:
        """Remove what is over of a hash; the hash, if anything is left of it. Raises StoreError."""
        found = self._keyspace.for_change(database, name)
        if not isinstance(found, Hash):
            return None
        self._take_over(found)
        return found if len(found) else None

    def _take_over(self, found: Hash) -> int:
        removed = found.take_over(_AT_ONCE)
        if removed:
            self._stats.expired_fields += removed
            self._notifications.tell("h", b"hexpired", found.database, found.name)
            if not len(found):
                self._keyspace.remove(found)
                self._notifications.tell("g", b"del", found.database, found.name)
        return removed

    def step(self, limit: int) -> int:
        """Go to at most `limit` hashes that have fields whose time is over; how many there were. Raises StoreError."""
        keyspace = self._keyspace
        rows = fields.due(keyspace.settle(), keyspace.clock_ms(), limit)
        if not rows:
            return 0
        databases = {space.number: database for database, space in key_records.spaces(keyspace.settle()).items()}
        for row in rows:
            place = fields.place_of(row)
            database = databases.get(key_records.space_of(place))
            stored = key_records.get(keyspace.settle(), place) if database is not None else None
            if database is None or stored is None:  # of a space that is garbage
                fields.set_expiring(keyspace.writing(), row, b"")
                continue
            found = keyspace.for_change(database, stored.name)
            if isinstance(found, Hash):
                self._take_over(found)
        return len(rows)
