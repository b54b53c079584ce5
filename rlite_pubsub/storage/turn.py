"""The transaction that one turn of a thread has open on an environment: a snapshot, or the one that writes.

A turn's commands read and write through it, and see what those before them wrote; `commit` at the turn's end makes all
of it durable at once. Other code that wants a transaction of this environment in the same thread (a durable
subscriber's mailbox) makes it step aside first: `give_way` commits what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import lmdb

from rlite_pubsub.storage.environment import Environment, Txn

if TYPE_CHECKING:
    from rlite_pubsub.storage.log.transaction import Snapshot


class Turn:
    """The turn of one thread that executes commands. Closed between turns."""

    __slots__ = (
        "_environment",
        "bytes_before",
        "came_from",
        "commits",
        "failure",
        "give_way",
        "is_locked",
        "place",
        "reached",
        "seen",
        "txn",
        "wants_sync",
        "writes",
    )

    def __init__(self, environment: Environment, give_way: Callable[[], None]) -> None:
        self._environment = environment
        self.give_way = give_way
        self.txn: Txn | None = None
        self.writes = False
        self.seen = -1
        """The last commit that its transaction sees; of several turns that share one, the one that is being made."""
        self.commits = 0
        """How many of its turns were committed, one that something interrupted behind its commit among them."""
        self.place = 0
        """Of this turn among those that share its transaction."""
        self.reached: Snapshot | None = None  # the environment's: how far of a log its last transaction has read
        self.came_from: Snapshot | None = None  # the environment's: how far the one before had
        self.wants_sync = False  # its replies wait until its commit is on the disk, whatever appendfsync says
        self.is_locked = False  # the environment's: it has the writer's lock
        self.failure: Exception | None = None  # of this turn: nothing more can be written in it
        self.bytes_before: int | None = None  # the environment's: how much there was, if the quota is near

    def begin(self, *, write: bool) -> Txn:
        """Open a transaction; none may be open. Raises StoreError."""
        return self._environment.begin(self, write=write)

    def end(self, *, commit: bool) -> None:
        """Commit it, or undo it. Raises StoreError if the commit fails; then it is undone."""
        if self.txn is not None:
            self._environment.end(self, commit=commit)

    def drop(self) -> None:
        """Undo it, wherever an exception from without has interrupted `begin` or `end`."""
        self.end(commit=False)
        self._environment.drop(self)

    def fail(self, failure: Exception) -> None:
        """Note that nothing more can be done in this turn, and nothing of it was."""
        self.failure = failure

    def recover(self) -> None:
        """End a turn that failed."""
        self.failure = None

    def want_sync(self) -> None:
        """Have what this turn commits on the disk before it is answered."""
        self.wants_sync = True

    def answer_sync(self) -> bool:
        """Return whether that was asked for, and clear it for the next turn."""
        wanted, self.wants_sync = self.wants_sync, False
        return wanted

    def check_room(self) -> None:
        """Raise what `end` would raise if the quota is exceeded."""
        if self.txn is not None:
            self._environment.room.check(self.txn, self.bytes_before)

    @property
    def is_broken(self) -> bool:
        """True if its transaction has met an error, and can only be undone."""
        if self.txn is None:
            return False
        try:
            self.txn.get(b"\0")
        except lmdb.Error:
            return True
        return False

    def told(self, error: Exception) -> Exception:
        """Translate an error met in the transaction into ours. The transaction must have ended."""
        return self._environment.told(error)
