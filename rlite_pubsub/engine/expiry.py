"""Active expiry: keys and fields of hashes that have expired are removed, though nobody asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.sweeping import expire_some
from rlite_pubsub.storage.keys import fields, key_records

if TYPE_CHECKING:
    from rlite_pubsub.engine.field_expiry import FieldExpiry
    from rlite_pubsub.keyspace.keyspace import Keyspace


class Expiry:
    """The active expiry of one engine."""

    def __init__(self, keyspace: Keyspace, fields: FieldExpiry) -> None:
        self._keyspace = keyspace
        self._fields = fields
        self.is_on = True
        """False: keys and fields expire only when somebody asks for them (DEBUG SET-ACTIVE-EXPIRE)."""

    @property
    def may_remove(self) -> bool:
        """Return whether it may remove anything now: a master says what goes, and nothing does during a pause."""
        return self.is_on and self._keyspace.times.may_expire

    def keys(self, limit: int) -> int:
        """Remove at most `limit` expired keys of each part; return how many there were. Raises StoreError."""
        return expire_some(self._keyspace.parts, limit)

    def fields(self, limit: int) -> int:
        """Look through at most `limit` hashes with expired fields; return how many there were. Raises StoreError."""
        return self._fields.step(limit)

    def some(self, limit: int) -> int:
        """Remove about so many expired keys and fields, if it may; return how many there were. Raises StoreError."""
        if not self.may_remove:
            return 0
        return self.keys(limit) or self.fields(limit)

    def overdue_ms(self) -> int:
        """Return for how long the first of what has expired has been there. Raises StoreError."""
        keyspace = self._keyspace
        txn = keyspace.settle()
        first = [key_records.first_expiry(part.settle()) for part in keyspace.parts]
        due = [due_ms for due_ms in (*first, fields.first_due(txn)) if due_ms]
        return max(0, keyspace.clock_ms() - min(due)) if due else 0
