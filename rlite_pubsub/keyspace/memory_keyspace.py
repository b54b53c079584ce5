"""Ephemeral topics: those whose names end in `#ephemeral` are in memory, in a keyspace beside the store's.

They are this process's alone: other processes of the store do not see them, and they are gone with it. All else about
them is as it is with other topics: their turns are the store's turns, and end together with these.

Law 5, over both: what can go wrong at a turn's end goes wrong before the store's commit, and then both are undone; the
memory's own commit follows it. Should that one fail after all, the store's part is done and the memory's is not: it is
lost, as it may be at any time, and that is said in the log (law 8).
"""

from __future__ import annotations

import logging
import weakref
from typing import TypeVar

from rlite_pubsub.keyspace.collection import Collection
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.records import Record
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.memory import EPHEMERAL, open_memory

log = logging.getLogger("rlite_pubsub")

N = TypeVar("N", bound=Topic | Collection)


class MemoryKeyspace(Keyspace):
    """The part of a keyspace that is in memory. What is no ephemeral topic it leaves to the other part."""

    def __init__(self, stored: Keyspace) -> None:
        """Raises StoreError."""
        environment = open_memory()
        super().__init__(environment, stored.clock_ms, stored.agenda)
        weakref.finalize(self, environment.close).atexit = False
        self._stored = stored
        self.awaited = stored.awaited
        self.coarse_now = stored.coarse_now
        self.ready = stored.ready
        self.touched = stored.touched
        self.on_expired = lambda database, name: stored.on_expired(database, name)
        self.on_added = lambda database, name: stored.on_added(database, name)
        self.on_modified = lambda database, name: stored.on_modified(database, name)
        self.on_appended = lambda database, name: stored.on_appended(database, name)

    # -- transactions: none without one of the store's

    def _begin(self, *, write: bool) -> Txn:
        if write:
            self._stored.writing()
        else:
            self._stored.reading()
        return super()._begin(write=write)

    def _give_way(self) -> None:
        self._stored._give_way()

    def prepare(self) -> None:
        """Do what can go wrong before the store commits. Raises what goes wrong."""
        if self._changed:
            self.writing()
        if self.turn.writes:
            self.settle()
            self.turn.check_room()

    def end_turn(self) -> Exception | None:
        """The store has committed: so does the memory."""
        failure = super().end_turn()
        if failure is not None:
            log.warning("What was just done to ephemeral topics is lost: %s", failure)
        return failure

    def fail(self, error: Exception) -> Exception:
        return self._stored.fail(error)

    # -- names

    def find(self, database: int, name: bytes) -> Record | None:
        stored = self._stored
        if not name.endswith(EPHEMERAL):
            return stored.find(database, name)
        if stored.stretches:
            stored.take_in()
        self.may_expire = stored.may_expire
        return super().find(database, name)

    def for_change(self, database: int, name: bytes) -> Record | None:
        if not name.endswith(EPHEMERAL):
            return self._stored.for_change(database, name)
        return super().for_change(database, name)

    def create(self, kind: type[N], database: int, name: bytes) -> N:
        if kind is Topic and name.endswith(EPHEMERAL):
            return self._create(kind, database, name)
        return self._stored.create(kind, database, name)
