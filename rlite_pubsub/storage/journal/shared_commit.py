"""One commit of LMDB for several turns of a server.

While turns come quickly, each changes pages that the one before it has written just now. So a busy server that has the
store to itself keeps its transaction open over several turns: each turn's rows go to the journal, in one write, and
LMDB commits all of them a moment later (SHARED_S).

Laws kept here:
 5. acknowledge after commit: for a turn that shares one, the record in the journal is the commit. If the transaction
    has to be undone, the turns in the journal are done again at once.
 9. nobody waits for the stopped: whoever opens the store is heard at the end of the turn, and from then on each turn
    commits by itself. A process that is stopped in the moment between is named, as any writer is (recovery.py).
10. an idle process holds no page of the store: the moment ends by a timer.

What reads in the middle of it, in whichever thread, first has the commit made (`give_way`, `wait_until_home`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from math import inf
from threading import Condition, get_ident, get_native_id
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar, cast

from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.journal.journal import Journal, bring_home
from rlite_pubsub.storage.journal.recording import MOST_TURN_BYTES, RecordedTransaction
from rlite_pubsub.storage.locks.writer_lock import said

if TYPE_CHECKING:
    from pathlib import Path

    from rlite_pubsub.storage.journal.recording import Txn

log: Final = logging.getLogger("rlite_pubsub")

SHARED_S: Final = 0.025
"""How long turns share a commit, and how soon after the last one a turn must come to begin to."""
MOST_ROWS: Final = 16_000
"""How many rows may be changed in this time, each of which may need a page of its own: see `Room.is_roomy`."""
COMMIT_S: Final = 0.008
"""How long a commit may take, about, in time of the processor: whatever comes meanwhile waits."""
FEWEST_CHANGES: Final = 200
"""This many rows are committed at once in any case."""
CROWDED_S: Final = 1.0
"""How long each turn commits by itself after another thread has used the store."""
LARGE_TURNS: Final = 16
"""How many turns commit by themselves after one that was too large to share."""


class Pace(NamedTuple):
    """How many turns share a commit."""

    shared_s: float = SHARED_S
    most_rows: int = MOST_ROWS


PACE: Final = Pace()

CallLater = Callable[[float, Callable[[], None]], object]
CallFromThread = Callable[[Callable[[], None]], None]


class SharingTurn(Protocol):
    """The turn of a loop (turn.py)."""

    txn: Txn | None
    wants_sync: bool


T = TypeVar("T")


class SharedEnvironment(Protocol):
    """The environment (environment.py)."""

    path: Path

    def is_roomy(self) -> bool:
        """Return whether whatever several turns add fits."""

    def bring_home(self) -> None:
        """Commit what turns share, between two of them. Raises StoreError."""

    def write(self, work: Callable[[Txn], T], *, freeing: bool = False) -> T: ...


class SharedCommit:
    """The turns of one loop that share a commit, and the transaction that they have open.

    It is the loop's, but for `wait_until_home`. Between two of its turns it stands for them in the handle's list.
    """

    def __init__(
        self,
        environment: SharedEnvironment,
        turn: SharingTurn,
        journal: Journal,
        openings: memoryview[int],
        alone: int,
        call_later: CallLater,
        call_from_thread: CallFromThread,
        pace: Pace = PACE,
    ) -> None:
        self._shared_s, self._most_rows = pace
        self.turn = turn
        self.txn: Txn | None = None
        """The transaction, from the first turn on."""
        self.count = 0
        """How many turns are acknowledged, and in the journal alone."""
        self.is_owing = False
        """Turns of the journal could not be done again: nothing else can be done before."""
        self.payer = 0
        """The thread that is doing them again, in Python's numbering: all others wait for it."""
        self._rows = 0  # that these turns have changed
        self._changes = 0  # rows of the commit that is under way
        self._most_changes = FEWEST_CHANGES * 2  # in one commit: as many as lately took COMMIT_S
        self._left_at = 0.0
        self.alone = alone
        """This process has the store to itself as long as the first of the openings is this."""
        self._openings = openings
        self._environment = environment
        self._journal = journal
        self._call_later = call_later
        self._call_from_thread = call_from_thread
        self._recorded: RecordedTransaction | None = None
        self._until = 0.0
        self._committed_at = -inf
        self._is_timed = False
        self._is_ending = False
        self._large = 0
        self._crowded_until = 0.0
        self._loop_thread = 0
        self._home = Condition()
        self._waiting = 0

    # -- one turn after the other

    def record(self, txn: Txn, may_share: bool) -> Txn:
        """Return the transaction for a turn that has just begun to write: one that others may share if turns come
        quickly, else the same. `may_share`: as far as the environment knows."""
        now = monotonic()
        if self._large:
            self._large -= 1
            return txn
        if (
            now > self._committed_at + self._shared_s
            or now < self._crowded_until
            or self._is_ending
            or not may_share
            or self._openings[0] != self.alone
            or not self._environment.is_roomy()
        ):
            return txn
        self._recorded = RecordedTransaction(txn)
        self._until = now + self._shared_s
        self._rows = 0
        self._journal.begin(txn.id() - 1)
        self.txn = cast("Txn", self._recorded)
        return self.txn

    def joins(self, may_share: bool) -> bool:
        """Write down what the turn has changed, if it shares its commit. Returns False if it must be committed now."""
        recorded, count = self._recorded, self.count
        assert recorded is not None
        if recorded.size > MOST_TURN_BYTES:
            self._large = LARGE_TURNS
            return False
        if (
            self._is_ending
            or self._waiting
            or self.turn.wants_sync
            or not may_share
            or self._openings[0] != self.alone
            or monotonic() >= self._until
        ):
            return False
        rows = recorded.rows
        if not rows:
            return count > 0
        self._rows += len(rows)
        if self._rows > self._most_rows or recorded.changes > self._most_changes:
            return False
        try:
            if not self._journal.append(rows):
                return False
            if self._openings[0] != self.alone:  # whoever comes looks at the journal, and may have done so just before
                self._journal.take_back(count)  # its commit may still fail
                return False
        except OSError as trouble:
            log.warning("The journal can't be written (%s): each turn is committed by itself", trouble)
            self._crowded_until = monotonic() + CROWDED_S
            return False
        self.count = count + 1
        recorded.rows = {}
        recorded.size = 0
        recorded.is_direct = False
        if not self._is_timed:
            self._is_timed = True
            self._loop_thread = get_native_id()
            self._call_later(self._shared_s, self._end_moment)
        return True

    def leave(self) -> Txn:
        """Return the transaction, which is about to end, with all that shares it."""
        txn, recorded, self.txn, self._recorded = self.txn, self._recorded, None, None
        assert txn is not None and recorded is not None
        self._changes = recorded.changes
        self._left_at = thread_time()
        return txn

    def committed(self) -> None:
        """Note that it is committed."""
        self._committed_at = monotonic()
        changes = self._changes
        if changes >= FEWEST_CHANGES:
            most = int(changes * COMMIT_S / max(thread_time() - self._left_at, COMMIT_S / 100))
            self._most_changes = max(FEWEST_CHANGES, min(most, 2 * self._most_changes, MOST_ROWS))
        self._changes = 0
        self._come_home()

    def undone(self) -> None:
        """Do again what the journal has, since the transaction was undone. Never fails: see `is_owing`."""
        self._changes = 0
        count = self.count
        if not count:
            return
        try:
            self._journal.take_back(count)
            self.pay()
        except (StoreError, OSError) as failure:
            self.is_owing = True
            log.error("%d turns are acknowledged, and only in the journal: %s", count, failure)

    def pay(self) -> None:
        """Bring home what the journal has, in a transaction of its own, unless a process that has opened the store
        since has done it. Raises StoreError."""
        self.is_owing, self.payer = False, get_ident()
        try:
            self._environment.write(partial(bring_home, self._journal.owed), freeing=True)
        except BaseException:
            self.is_owing = True
            raise
        finally:
            self.payer = 0
        self._come_home()

    def _come_home(self) -> None:
        self.count = 0
        self._journal.forget()
        if self._waiting:
            with self._home:
                self._home.notify_all()

    # -- its end

    def give_way(self) -> None:
        """Commit now, between two turns. Raises StoreError."""
        if self.txn is None or self.turn.txn is not None:
            return
        was_ending, self._is_ending = self._is_ending, True
        try:
            self._environment.bring_home()
        finally:
            self._is_ending = was_ending

    def end(self, *, commit: bool) -> None:
        """Do as `give_way`: what is acknowledged is never undone."""
        self.give_way()

    def close(self) -> None:
        """Commit, and let each turn commit by itself from now on. Raises StoreError if that fails: then the next
        process that opens the store brings the journal home."""
        self._is_ending = True
        try:
            self.give_way()
        finally:
            self._journal.close()

    def _end_moment(self) -> None:
        self._is_timed = False
        try:
            self.give_way()
        except StoreError as failure:
            log.warning("Can't commit: %s", failure)

    # -- other threads

    def wait_until_home(self, patience_s: float) -> None:
        """Wait, in another thread, until LMDB has all that is acknowledged. Raises StoreHeld."""
        began = monotonic()
        with self._home:
            self._waiting += 1
            self._crowded_until = began + CROWDED_S
            try:
                self._call_from_thread(self._end_moment)
                is_home = self._home.wait_for(lambda: not self.count, patience_s)
            finally:
                self._waiting -= 1
        if not is_home:
            path = self._environment.path
            raise StoreHeld(path, partial(said, self._loop_thread, path, monotonic() - began))
