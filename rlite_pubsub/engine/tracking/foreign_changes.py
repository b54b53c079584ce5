"""Tracked keys that other processes change: noticed by their versions, ten times a second, for a few milliseconds.

A version is noted when a key is read. Whenever anybody else has committed, the keys that are tracked are compared with
it, one after the other, as the time allows; so a reader is told of a change a little later, and never not at all.
Sessions that broadcast are told only of what this process changes: nobody knows which keys to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace

_BATCH = 50


class ForeignChanges:
    """What is known of the keys that sessions of one engine have read."""

    def __init__(self, changed: Callable[[bytes], None]) -> None:
        self._changed = changed  # to be told of each key that has
        self._versions: dict[bytes, dict[int, int | None]] = {}  # name -> database -> version (None: not yet known)
        self._compared_at = 0  # the keyspace's count of commits of others
        self._under_way: Iterator[bytes] | None = None

    def note(self, keyspace: Keyspace, database: int, name: bytes) -> None:
        """A session has read the key as it is now."""
        versions = self._versions.setdefault(name, {})
        if database not in versions:
            versions[database] = keyspace.version(database, name)

    def forget(self, name: bytes) -> None:
        """Nobody needs to hear of the key any more."""
        self._versions.pop(name, None)

    def forget_all(self) -> None:
        self._versions.clear()

    def swapped(self, first: int, second: int) -> None:
        """Two databases have changed places: as in Redis, that is no change of a key."""
        for versions in self._versions.values():
            for database in (first, second):
                if database in versions:
                    versions[database] = None

    def look(self, keyspace: Keyspace, deadline: float) -> None:
        """Go on comparing. Raises StoreError."""
        if not self._versions:
            self._compared_at = keyspace.commits_of_others
            return
        keyspace.reading()  # notices whether anybody else has committed
        if self._under_way is None:
            if keyspace.commits_of_others == self._compared_at:
                return
            self._compared_at = keyspace.commits_of_others
            self._under_way = iter(list(self._versions))
        while True:
            for _ in range(_BATCH):
                name = next(self._under_way, None)
                if name is None:
                    self._under_way = None
                    return
                self._compare(keyspace, name)
            if perf_counter() > deadline:
                return

    def _compare(self, keyspace: Keyspace, name: bytes) -> None:
        versions = self._versions.get(name, {})
        for database, version in versions.items():
            now = keyspace.version(database, name)
            if version is None:
                versions[database] = now
            elif now != version:
                self._changed(name)
                return
