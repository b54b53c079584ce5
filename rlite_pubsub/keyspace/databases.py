"""Whole databases, over all parts of a keyspace: their sizes and contents, flushing and swapping."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import TYPE_CHECKING, Final

from rlite_pubsub.storage.keys import digests, key_records

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.part import Part


MOST_OVER: Final = 100
"""How many expired keys one look for a random one notices."""


class Databases:
    """The databases of these parts, of which there is at least one."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def size(self, database: int) -> int:
        """Return how many keys it has, including expired ones that nobody has noticed."""
        return sum([part.space(database).size for part in self._parts])

    def sizes(self) -> dict[int, tuple[int, int]]:
        """Return (keys, keys that expire) of every database that has any."""
        sizes: dict[int, tuple[int, int]] = {}
        for part in self._parts:
            for database, space in part.spaces().items():
                if space.size:
                    size, expiring = sizes.get(database, (0, 0))
                    sizes[database] = size + space.size, expiring + space.expiring
        return dict(sorted(sizes.items()))

    def numbers(self) -> list[int]:
        """Return the databases that hold any keys."""
        return list(self.sizes())

    def walk(self, database: int) -> Iterator[tuple[bytes, int]]:
        """Yield (name, type) of every key that has not expired. Nothing may be changed meanwhile."""
        now_ms = self._parts[0].clock_ms()
        for _, type_, expires_ms, name in self._walk(database):
            if not expires_ms or expires_ms > now_ms:
                yield name, type_

    def _walk(self, database: int, digest: bytes = b"") -> Iterator[tuple[bytes, int, int, bytes]]:
        """Walk like `key_records.walk`, over all parts."""
        walks = [part.walk(database, digest) for part in self._parts]
        return walks[0] if len(walks) == 1 else merge(*walks)

    def scan(self, database: int, cursor: int, count: int) -> tuple[int, list[tuple[bytes, int]], list[bytes]]:
        """Do a step of SCAN: return the next cursor, 0 at the end, and (name, type) of about `count` keys; apart from
        them the names of expired ones, for the caller to look up and so remove.

        A cursor is a place among digests (storage/keys/digests.py), so a key that stays is seen whatever else changes.
        """
        now_ms = self._parts[0].clock_ms()
        found: list[tuple[bytes, int]] = []
        over: list[bytes] = []
        steps = 0
        last = b""
        for digest, type_, expires_ms, name in self._walk(database, digests.start_of(cursor)):
            if steps >= count:
                following = digests.cursor_between(last, digest, self.size(database), steps - count)
                if following:
                    return following, found, over
            steps += 1
            last = digest
            if not expires_ms or expires_ms > now_ms:
                found.append((name, type_))
            else:
                over.append(name)
        return 0, found, over

    def random(self, database: int) -> tuple[bytes | None, list[bytes]]:
        """Return the name of a random key, and apart from it the names of some expired ones, as for `scan`."""
        over: list[bytes] = []
        now_ms = self._parts[0].clock_ms()
        start = random.randbytes(key_records.DIGEST_BYTES)
        for digest in (start, b""):
            for _, _, expires_ms, name in self._walk(database, digest):
                if not expires_ms or expires_ms > now_ms:
                    return name, over
                if len(over) < MOST_OVER:
                    over.append(name)
        return None, over

    def flush(self, database: int) -> int:
        """Remove all keys of a database; return how many there were. Raises StoreError."""
        gone = sum([part.flush(database) for part in self._parts])
        if gone:
            self._parts[0].news.signal(database, None)
        return gone

    def swap(self, first: int, second: int) -> None:
        """Swap two databases. Raises StoreError."""
        for part in self._parts:
            part.swap(first, second)
        for database in (first, second):
            self._parts[0].news.signal(database, None)
