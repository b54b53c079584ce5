"""Which keys are evicted next."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING

from rlite_pubsub.keyspace.databases import Databases
from rlite_pubsub.storage.keys import key_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlite_pubsub.engine.eviction.usage import Usage
    from rlite_pubsub.keyspace.keyspace import Keyspace

_REMEMBERED = 64
"""How many runners-up are remembered."""
_MOST_GARBAGE = 100
"""Keys of flushed databases that are passed by, until they are swept up."""
_RUN = 16
"""How many keys that follow each other are a sample. Their digests do, so they have nothing to do with each other..."""
_RUN_OF_EXPIRING = 4
"""... but those that expire one after the other may have been written so."""
_MOSTLY = 4
"""If one of so many keys expires, such are sampled among all keys."""

Key = tuple[int, bytes]


class Victims:
    """Picks the next keys of a keyspace to evict, as `maxmemory-policy` says.

    By time to live, these are exactly the next to expire. By use, they are the least valuable of a random sample and of
    the runners-up of earlier samples: Redis's approximation, with its `maxmemory-samples` for each. Only stored keys
    are looked at: ephemeral topics have a limit of their own.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._databases = Databases([keyspace.stored])
        self._nearly: set[Key] = set()

    def soonest(self, wanted: int) -> list[Key]:
        """Return the next keys to expire, at most so many."""
        return list(islice(self._expiring_from(0, b""), wanted))

    def any(self, wanted: int, *, expiring: bool) -> list[Key]:
        """Return random keys, or random ones that expire: so many, if there are as many, but some may repeat."""
        if expiring:
            return self._any_expiring(wanted)
        found = [key for key, _ in self._any(wanted)]
        return found or self.soonest(wanted)  # the time of all of them is over

    def least_used(self, usage: Usage, samples: int, wanted: int, now: float, *, expiring: bool) -> list[Key]:
        """Return the least used keys of a sample, or of a sample of those that expire."""
        worth = usage.worth
        seen = self._nearly
        seen.update(self.any(samples * wanted, expiring=expiring))
        ranked = sorted([(worth(*key, now), key) for key in seen])
        victims: list[Key] = []
        at = 0
        while at < len(ranked) and len(victims) < wanted:
            key = ranked[at][1]
            if self._is_there(key, expiring):
                victims.append(key)
            at += 1
        self._nearly = {key for _, key in ranked[at : at + _REMEMBERED]}
        return victims

    def forget(self) -> None:
        """Forget the runners-up: another policy picks from now on."""
        self._nearly = set()

    def _is_there(self, key: Key, expiring: bool) -> bool:
        record = self._keyspace.find(*key)
        return record is not None and (not expiring or bool(record.expires_ms))

    def _any(self, wanted: int) -> list[tuple[Key, int]]:
        """Return random keys that have not expired, each with the time when it will."""
        sizes = {database: size for database, (size, _) in self._databases.sizes().items()}
        found: list[tuple[Key, int]] = []
        for _ in range(-(-wanted // _RUN) if sizes else 0):
            (database,) = random.choices(list(sizes), weights=list(sizes.values()))
            run = min(_RUN, wanted - len(found))
            found += [((database, name), due_ms) for name, due_ms in self._databases.random_run(database, run)]
        return found

    def _any_expiring(self, wanted: int) -> list[Key]:
        sizes = self._databases.sizes().values()
        if sum([expiring for _, expiring in sizes]) * _MOSTLY >= sum([size for size, _ in sizes]):
            found = [key for key, due_ms in self._any(wanted * _MOSTLY) if due_ms]
            if found:
                return found[:wanted]
        return self._any_of_expiries(wanted)

    def _any_of_expiries(self, wanted: int) -> list[Key]:
        bounds = key_records.expiry_range(self._keyspace.settle())
        found: list[Key] = []
        for _ in range(-(-wanted // _RUN_OF_EXPIRING) if bounds is not None else 0):
            assert bounds is not None
            place = random.randbytes(4 + key_records.DIGEST_BYTES)
            found += islice(self._expiring_from(random.randint(*bounds), place), _RUN_OF_EXPIRING)
        return found[:wanted] or self.soonest(wanted)

    def _expiring_from(self, when_ms: int, place: bytes) -> Iterator[Key]:
        txn = self._keyspace.settle()
        spaces = {space.number: database for database, space in self._keyspace.stored.spaces().items()}
        passed = 0
        for _, found in key_records.expiring_from(txn, when_ms, place):
            database = spaces.get(key_records.space_of(found))
            stored = key_records.get(txn, found) if database is not None else None
            if database is not None and stored is not None:
                yield database, stored.name
                continue
            passed += 1
            if passed > _MOST_GARBAGE:
                return
