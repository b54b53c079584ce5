"""The expiry of hash fields: expired fields are removed by the next command on their hash, or in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlite_pubsub.keyspace.effects import BEYOND
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.storage.keys import fields, key_records

if TYPE_CHECKING:
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.keyspace.keyspace import Keyspace

NO_FIELD, NO_EXPIRY = -2, -1
REFUSED, DONE, REMOVED = 0, 1, 2
"""What is said of a field that was to expire."""
_AT_ONCE: Final = 1000
"""How many fields of one hash are removed at a time, at most: the others are hidden."""
_FIELDS_PER_STEP: Final = 200
"""How many fields a step removes in the background, at most."""


class FieldExpiry:
    """Removes expired fields."""

    def __init__(self, keyspace: Keyspace, notifications: Notifications, stats: Stats) -> None:
        self._keyspace = keyspace
        self._notifications = notifications
        self._stats = stats

    def is_due(self, found: Hash) -> bool:
        """Return whether any field of a hash has expired and may be removed."""
        return self._keyspace.may_remove_expired and found.due_ms <= self._keyspace.clock_ms()

    def take(self, database: int, name: bytes) -> Hash | None:
        """Remove a hash's expired fields; return the hash if any are left. Raises StoreError."""
        found = self._keyspace.for_change(database, name)
        if not isinstance(found, Hash):
            return None
        self._take_over(found)
        return found if len(found) else None

    def _take_over(self, found: Hash, limit: int = _AT_ONCE) -> int:
        removed = found.take_over(limit)
        if removed:
            effects = self._keyspace.stored.effects
            if effects is not None:
                effects.changed(found, BEYOND)
            self._stats.expired_fields += removed
            self._notifications.tell("h", b"hexpired", found.database, found.name)
            if not len(found):
                self._keyspace.remove(found)
                self._notifications.tell("g", b"del", found.database, found.name)
        return removed

    def step(self, limit: int) -> int:
        """Look through at most `limit` hashes with expired fields; return how many there were, or `limit` if fields of
        the last one are left. Raises StoreError."""
        keyspace = self._keyspace
        left = _FIELDS_PER_STEP
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
                left -= self._take_over(found, left)
                if left <= 0:
                    return limit
        return len(rows)


def expire_field(found: Hash, name: bytes, due_ms: int, now_ms: int, condition: bytes = b"") -> int:
    """Set when a field expires, removing it at once if that time is past; return HEXPIRE's answer for it."""
    field = found.field(name)
    if field is None:
        return NO_FIELD
    if condition and not _allows(condition, field.due_ms, due_ms):
        return REFUSED
    if due_ms <= now_ms:
        found.remove([name])
        return REMOVED
    found.set_due(name, due_ms)
    return DONE


def _allows(condition: bytes, before_ms: int, after_ms: int) -> bool:
    """Return whether the condition (NX, XX, GT or LT) allows the change. A field without an expiry counts as the last
    to expire."""
    if condition in (b"nx", b"xx"):
        return bool(before_ms) == (condition == b"xx")
    if condition == b"gt":
        return 0 < before_ms < after_ms
    return not before_ms or after_ms < before_ms
