"""Which keys are evicted next."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Final

from rlite_pubsub.keyspace.databases import Databases
from rlite_pubsub.storage.keys import key_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlite_pubsub.engine.eviction.usage import Key, Usage
    from rlite_pubsub.keyspace.keyspace import Keyspace

_REMEMBERED: Final = 16
"""How many runners-up are remembered."""
_MOST_GARBAGE: Final = 100
"""Keys of flushed databases that are passed by, until they are swept up."""
_RUN: Final = 64
"""How many keys that follow each other are a sample. Their digests do, so they have nothing to do with each other but
the pages that they are on..."""
_RUN_OF_EXPIRING: Final = 4
"""... but those that expire one after the other may have been written so."""
_MOSTLY: Final = 4
"""If one of so many keys expires, such are sampled among all keys."""
_MOST_RUNS: Final = 8
"""How many samples find nobody, since all are over, before one gives up."""


class Victims:
    """Picks the next keys of a keyspace to evict, as `maxmemory-policy` says.

    By time to live, these are exactly the next to expire. By use, they are the least valuable of a random sample and of
    the runners-up of earlier samples: Redis's approximation, with its `maxmemory-samples` for each. Only stored keys
    are looked at: ephemeral topics have a limit of their own.
    """

    def __init__(self, keyspace: Keyspace) -> None:
        self._keyspace = keyspace
        self._databases = Databases([keyspace.stored])
        self._nearly: list[Key] = []

    def soonest(self, wanted: int) -> list[Key]:
        """Return the next keys to expire, at most so many."""
        return list(islice(self._expiring_from(0, b""), wanted))

    def any(self, wanted: int, *, expiring: bool) -> list[Key]:
        """Return random keys, or random ones that expire: so many, if there are as many, but some may repeat."""
        if expiring:
            return self._any_expiring(wanted)
        sizes = {database: size for database, (size, _) in self._databases.sizes().items()}
        found = [key for key, _ in self._any(wanted, sizes)]
        return found or self.soonest(wanted)  # the time of all of them is over

    def least_used(self, usage: Usage, samples: int, wanted: int, now: float, *, expiring: bool) -> list[Key]:
        """Return the least used keys of a sample, or of a sample of those that expire."""
        ranked = usage.ranked(self._nearly + self.any(samples * wanted, expiring=expiring), now)
        self._nearly = ranked[wanted : wanted + _REMEMBERED]
        return ranked[:wanted]

    def forget(self) -> None:
        """Forget the runners-up: another policy picks from now on."""
        self._nearly = []

    def _any(self, wanted: int, sizes: dict[int, int]) -> list[tuple[Key, int]]:
        """Return random keys that have not expired, each with the time when it will."""
        part = self._keyspace.stored
        txn, now_ms = self._keyspace.settle(), part.clock_ms()
        numbers, weights = list(sizes), list(sizes.values())
        found: list[tuple[Key, int]] = []
        for _ in range(-(-wanted // _RUN) + _MOST_RUNS if numbers else 0):
            database = numbers[0] if len(numbers) == 1 else random.choices(numbers, weights=weights)[0]
            space, count = part.space(database).number, min(_RUN, wanted - len(found))
            start = random.randbytes(key_records.DIGEST_BYTES)
            some = key_records.run(txn, space, start, count, now_ms) or key_records.run(txn, space, b"", count, now_ms)
            found += [((database, name), due_ms) for name, due_ms in some]
            if len(found) >= wanted:
                break
        return found

    def _any_expiring(self, wanted: int) -> list[Key]:
        counts = self._databases.sizes()
        size, expiring = (sum(column) for column in zip(*counts.values(), strict=True)) if counts else (0, 0)
        if expiring and expiring * _MOSTLY >= size:
            sizes = {database: expiring for database, (_, expiring) in counts.items() if expiring}
            found = [key for key, due_ms in self._any(-(-wanted * size // expiring), sizes) if due_ms]
            if found:
                return found
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
        txn, part = self._keyspace.settle(), self._keyspace.stored
        spaces = {space.number: database for database, space in part.spaces().items()}
        passed = 0
        for _, found in key_records.expiring_from(txn, when_ms, place):
            database = spaces.get(key_records.space_of(found))
            stored = key_records.get(txn, found) if database is not None else None
            if database is not None and stored is not None:
                yield database, part.found(database, found, stored).name  # so that whoever removes it has it
                continue
            passed += 1
            if passed > _MOST_GARBAGE:
                return
