"""Which key goes next, as `maxmemory-policy` says.

By time to live it is exactly the next to expire. By use it is the least worth of a few that chance has picked, and of
those that were nearly picked before: Redis's approximation, with its `maxmemory-samples`. Only what is stored is looked
at: ephemeral topics have a limit of their own.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.databases import Databases
from rlite_pubsub.storage.keys import key_records

if TYPE_CHECKING:
    from rlite_pubsub.engine.eviction.usage import Usage
    from rlite_pubsub.keyspace.keyspace import Keyspace

_REMEMBERED = 16
"""So many that were nearly picked are remembered."""
_MOST_GARBAGE = 100
"""Keys of flushed databases that are passed by, until they are swept up."""

Key = tuple[int, bytes]


class Victims:
    """Of one keyspace."""

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._databases = Databases([keyspace.stored])
        self._nearly: list[tuple[int, Key]] = []  # (worth, key), the least worth first

    def soonest(self) -> Key | None:
        """The next key to expire."""
        return self._expiring_from(0, b"")

    def any(self, *, expiring: bool) -> Key | None:
        """Any key, or any that expires."""
        if expiring:
            return self._any_expiring()
        sizes = {database: size for database, (size, _) in self._databases.sizes().items()}
        if not sizes:
            return None
        (database,) = random.choices(list(sizes), weights=list(sizes.values()))
        name = self._databases.random(database)
        return None if name is None else (database, name)

    def least_used(self, usage: Usage, samples: int, now: float, *, expiring: bool) -> Key | None:
        """The least used of some, or of some that expire."""
        worths = {key: usage.worth(*key, now) for _, key in self._nearly if self._is_there(key, expiring)}
        for _ in range(samples):
            key = self.any(expiring=expiring)
            if key is not None:
                worths[key] = usage.worth(*key, now)
        self._nearly = sorted((worth, key) for key, worth in worths.items())[:_REMEMBERED]
        return self._nearly.pop(0)[1] if self._nearly else None

    def forget(self) -> None:
        """Another policy picks from now on."""
        self._nearly.clear()

    def _is_there(self, key: Key, expiring: bool) -> bool:
        record = self._keyspace.find(*key)
        return record is not None and (not expiring or bool(record.expires_ms))

    def _any_expiring(self) -> Key | None:
        bounds = key_records.expiry_range(self._keyspace.settle())
        if bounds is None:
            return None
        place = random.randbytes(4 + key_records.DIGEST_BYTES)
        return self._expiring_from(random.randint(*bounds), place) or self._expiring_from(0, b"")

    def _expiring_from(self, when_ms: int, place: bytes) -> Key | None:
        txn = self._keyspace.settle()
        spaces = {space.number: database for database, space in self._keyspace.stored.spaces().items()}
        for passed, (_, found) in enumerate(key_records.expiring_from(txn, when_ms, place)):
            database = spaces.get(key_records.space_of(found))
            stored = key_records.get(txn, found) if database is not None else None
            if database is not None and stored is not None:
                return database, stored.name
            if passed == _MOST_GARBAGE:
                break
        return None
