"""A store is followed, and every change is brought to a target: what a process of its own does, in two threads.

The first rolls the trail every second (`tick`), so that no page is held for longer, whatever the target does. The other
(`_run`) brings away what it has found: the changes in order, and the pieces of a snapshot in turn with them; while
there is neither, what nobody needs any more goes. Where the target is away, changes wait in memory, each by itself, so
that every second can be restored all the same; when they are too many the trail is ended. Whoever is behind then begins
a new one, when all that waited is brought away: with a snapshot, most of whose pieces the target has.

A new snapshot is made now and then, so that a restore has not too many changes to put over it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from rlite_pubsub.backup import room, target
from rlite_pubsub.backup.errors import BackupError, TrailLost
from rlite_pubsub.backup.manifest import Block, PieceOf
from rlite_pubsub.backup.piece import Content
from rlite_pubsub.backup.row_trail import RowTrail, begin_trail
from rlite_pubsub.backup.rows import RowContent
from rlite_pubsub.backup.shipment import Shipment
from rlite_pubsub.backup.target import BackupTarget
from rlite_pubsub.backup.trail import Change, Standing, Trail
from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.cold.place import Place
from rlite_pubsub.storage.commons import backup_state
from rlite_pubsub.storage.commons.backup_state import BackupState
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

SNAPSHOT_SECONDS = 3600.0
"""Between two, at most, where anything is changed."""
SNAPSHOT_BYTES = 64 << 20
"""Of changes since the last, or as many as that one had, whichever is more: then a new one is due."""
MOST_WAITING_BYTES = 64 << 20
RETRY_SECONDS = 1.0
"""After a failure of the target."""
LOOK_SECONDS = 0.5
"""While somebody else makes a snapshot."""
ROLL_COMMITS = 1024
"""The pages that so many have freed may be held: some 25 MB."""
MOST_GATHERED_BYTES = 16 << 20
"""What was changed within an interval is brought away earlier if it is more."""
PATIENCE_S = 1.0
"""A target may be away when all ends."""


class BackupPlan(NamedTuple):
    """How often changes are backed up, and how long they are kept."""

    interval_s: float
    retain_s: int
    """0: forever."""

    @property
    def snapshot_s(self) -> float:
        """Old states go with the snapshot that they need, so there must be another one."""
        soon_s = max(10 * self.interval_s, self.retain_s / 2) if self.retain_s else SNAPSHOT_SECONDS
        return min(SNAPSHOT_SECONDS, soon_s)


class _Snapshot:
    """One that is being made."""

    def __init__(self, trail: Trail | RowTrail, since: set[Block]) -> None:
        self.chain = trail.chain
        self.begun = trail.standing
        self.since = since
        self._contents: Iterator[Content | RowContent] = iter(trail.contents())
        self._next: Content | RowContent | None = None
        self.pieces: list[PieceOf] = []
        self.is_begun = False
        self.is_copied = False
        """All of it was read: the state of any later roll is whole."""
        self.is_dropped = False
        self.finish: Standing | None = None
        """What it is a snapshot of."""

    def begin(self) -> None:
        """Begin: its first piece is about to be sent."""
        self.is_begun = True

    def next_content(self) -> Content | RowContent | None:
        """Return what is to be brought away: the same until `took`, and None at the end."""
        if self._next is None:
            self._next = next(self._contents, None)
        return self._next

    def took(self, piece: PieceOf) -> None:
        """Note that the target has the stretch."""
        self.pieces.append(piece)
        self._next = None

    def end_copy(self) -> None:
        """Note that the target has all stretches and blocks."""
        self.is_copied = True

    def finish_at(self, standing: Standing) -> None:
        """Finish it as a snapshot of this commit."""
        self.finish = standing

    def drop(self) -> None:
        """Drop it: it will not be finished."""
        self.is_dropped = True


class _Job(NamedTuple):
    """What waits to be backed up."""

    chain: str
    as_of_ms: int
    """All that was committed before is there then, if the chain has a snapshot."""
    change: Change | None = None
    snapshot: _Snapshot | None = None
    """Its manifest may be written."""
    is_asked: bool = False

    @property
    def is_empty(self) -> bool:
        return self.change is None and self.snapshot is None

    @property
    def size(self) -> int:
        return len(self.change.packed) if self.change is not None else 0


class BackupFollower:
    """Brings the changes of one store to one target."""

    def __init__(self, store: Store, place: Place, plan: BackupPlan, clock_ms: Callable[[], int]) -> None:
        """Nothing is asked of the target yet. Raises StoreError."""
        self._store = store
        self._place = place
        self._clock_ms = clock_ms
        self._identity = room.identity(store)
        before = backup_state.read(store.folder)
        kept = before if before is not None and before.target == place.shown else BackupState()
        self.state = BackupState(
            os.getpid(), place.shown, commit=kept.commit, as_of_ms=kept.as_of_ms, snapshot_ms=kept.snapshot_ms
        )
        self._said = BackupState()
        self._lock = room.BackupLock(store.folder, "snapshot.lock")
        # the first thread's
        self._trail: Trail | RowTrail | None = None
        self.cut_at = 0.0
        """When the next change is to be brought away, by the monotonic clock."""
        self._since: set[Block] = set()  # blocks that states since the last snapshot need
        self._since_bytes = 0
        self._snapshot_at = 0.0  # by the monotonic clock
        # both have these, under `_wake`
        self._wake = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._waiting_bytes = 0
        self._snapshot: _Snapshot | None = None
        self._is_over = False
        # the other's
        self._shipment: Shipment | None = None
        self._whole_chain = ""  # that has a snapshot
        self._snapshot_bytes = 0
        self._collecting: Iterator[str] | None = None
        self.obey(plan)
        self._thread = threading.Thread(target=self._run, name="rlite-pubsub-bring", daemon=True)
        self._thread.start()

    def obey(self, plan: BackupPlan) -> None:
        """Follow this plan from now on."""
        self._plan = plan
        self.state.interval_s, self.state.retain_s = plan.interval_s, plan.retain_s

    # -- the first thread

    @property
    def wants_tick(self) -> bool:
        """True if there is something to do before the next tick is due."""
        if self._trail is None:
            with self._wake:
                return not self._jobs and self._snapshot is None
        return self._has_copied or self._trail.commits >= ROLL_COMMITS

    @property
    def _has_copied(self) -> bool:
        """True if the next cut ends a snapshot."""
        with self._wake:
            return self._snapshot is not None and self._snapshot.is_copied and self._snapshot.finish is None

    @property
    def is_quiet(self) -> bool:
        """True if nothing waits, and nothing was committed since the last tick. Raises StoreError."""
        return self.is_settled and self._trail is not None and self._trail.commits == 0

    @property
    def is_settled(self) -> bool:
        """True if nothing waits, and everything committed before the last tick can be restored."""
        with self._wake:
            return not self._jobs and self._snapshot is None and self._trail is not None

    def tick(self, *, is_asked: bool = False) -> None:
        """Find what was changed; and have it brought away, if it is time, or somebody waits to hear of it. To be called
        at least every second."""
        try:
            if self._trail is None:
                self._begin()
            else:
                self._roll(self._trail, is_asked)
        except TrailLost as lost:
            log.info("The backup starts over: %s", lost)
            self._end_trail()
        except (StoreError, OSError) as failure:
            self._note_failure(failure)

    def _begin(self) -> None:
        with self._wake:
            if self._jobs or self._snapshot is not None:
                return  # there is something to bring away first
        trail = begin_trail(self._store, self._clock_ms)
        try:
            self._begin_snapshot(trail, set())
        except BaseException:
            trail.end()
            raise
        self._trail = trail

    def _begin_snapshot(self, trail: Trail | RowTrail, since: set[Block]) -> None:
        made = _Snapshot(trail, since)
        self._since_bytes, self._since, self._snapshot_at = 0, set(), time.monotonic()
        with self._wake:
            self._snapshot = made
            self._wake.notify_all()

    def _roll(self, trail: Trail | RowTrail, is_asked: bool) -> None:
        is_copied = self._has_copied
        as_of_ms, now = self._clock_ms(), time.monotonic()
        trail.roll()
        is_much = trail.gathered_bytes > MOST_GATHERED_BYTES
        if not (is_copied or is_asked or is_much or now >= self.cut_at):
            return
        self.cut_at = now + self._plan.interval_s
        change = trail.cut()
        if change is not None:
            self._since.update(change.new_blocks)
            self._since_bytes += len(change.packed)
        self._put(_Job(trail.chain, as_of_ms, change, is_asked=is_asked))
        snapshot = self._snapshot
        if is_copied and snapshot is not None:
            snapshot.finish_at(trail.standing)
            self._put(_Job(trail.chain, as_of_ms, snapshot=snapshot))
        if self._waiting_bytes > MOST_WAITING_BYTES:
            raise TrailLost(f"{self._waiting_bytes} bytes wait for the target")
        if snapshot is None and self._is_due():
            self._begin_snapshot(trail, self._since)

    def _put(self, job: _Job) -> None:
        with self._wake:
            if len(self._jobs) > 1 and self._jobs[-1].is_empty:
                job = job._replace(is_asked=job.is_asked or self._jobs.pop().is_asked)  # it says the same, and later
            self._jobs.append(job)
            self._waiting_bytes += job.size
            self._wake.notify_all()

    def _is_due(self) -> bool:
        if not self._since_bytes:
            return False
        is_much = self._since_bytes >= max(SNAPSHOT_BYTES, self._snapshot_bytes)
        return is_much or time.monotonic() >= self._snapshot_at + self._plan.snapshot_s

    def _end_trail(self) -> None:
        if self._trail is not None:
            self._trail.end()
            self._trail = None
        with self._wake:
            if self._snapshot is not None and self._snapshot.finish is None:
                self._snapshot.drop()
                self._wake.notify_all()

    def end(self) -> None:
        """Bring nothing more away, and hold no page."""
        with self._wake:
            self._is_over = True
            self._wake.notify_all()
        self._thread.join(PATIENCE_S)
        self._end_trail()
        self._tell()
        self._lock.close()

    # -- the other

    def _run(self) -> None:
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._is_over or self._has_work())
                if self._is_over:
                    return
            pause_s = RETRY_SECONDS
            try:
                pause_s = self._bring()
            except (StoreError, OSError) as failure:
                self._note_failure(failure)
            except Exception as failure:
                log.exception("A backup fails")
                self._note_failure(failure)
            if pause_s:
                self._tell()
                with self._wake:
                    self._wake.wait_for(lambda: self._is_over, pause_s)

    def _has_work(self) -> bool:
        snapshot = self._snapshot
        has_snapshot = snapshot is not None and (snapshot.is_dropped or not snapshot.is_copied)
        return bool(self._jobs) or has_snapshot or self._collecting is not None

    def _bring(self) -> float:
        """One thing of each kind that waits; how long to rest then."""
        if self._shipment is None:
            self._shipment = Shipment(BackupTarget(self._place), self._store.folder, self._identity)
        shipment, snapshot, pause_s = self._shipment, self._snapshot, 0.0
        before = shipment.bytes
        try:
            if snapshot is not None and snapshot.is_dropped:
                self._drop(snapshot)
            elif snapshot is not None and not snapshot.is_copied:
                pause_s = self._copy(shipment, snapshot)
            elif not self._jobs and self._collecting is not None:
                self._collect(shipment, self._collecting)
            if self._jobs:
                pause_s = 0.0
                self._do(shipment, self._jobs[0])
        finally:
            self.state.bytes += shipment.bytes - before
        return pause_s

    def _do(self, shipment: Shipment, job: _Job) -> None:
        state = self.state
        if job.change is not None:
            shipment.put_change(job.change)
            state.note_piece(job.change.name.path, self._clock_ms())
        if job.snapshot is not None:
            self._finish(shipment, job.snapshot)
        if not job.is_empty:
            state.note_taken(shipment.lost)
        if job.chain == self._whole_chain:
            state.note_reached(job.as_of_ms, job.change.standing.commit if job.change is not None else None)
        with self._wake:
            self._jobs.popleft()
            self._waiting_bytes -= job.size
        if job.is_asked or not job.is_empty:
            self._tell(is_asked=job.is_asked)

    def _copy(self, shipment: Shipment, snapshot: _Snapshot) -> float:
        if not snapshot.is_begun:
            if not self._lock.take():
                return LOOK_SECONDS
            snapshot.begin()
            self.state.note_snapshotting(True)
            self._snapshot_bytes = 0
            shipment.look()
            self._tell()
        content = snapshot.next_content()
        if content is not None:
            snapshot.took(shipment.put_piece(content))
            self._snapshot_bytes += content.size
        else:
            shipment.bring_blocks(snapshot.begun, snapshot.begun.blocks)
            snapshot.end_copy()
        return 0.0

    def _finish(self, shipment: Shipment, snapshot: _Snapshot) -> None:
        assert snapshot.finish is not None
        first = snapshot.begun.number
        name = shipment.put_manifest(snapshot.chain, first, snapshot.finish, snapshot.pieces, snapshot.since)
        with self._wake:
            self._snapshot = None
        self._whole_chain = snapshot.chain
        self.state.note_snapshot(name.path, snapshot.finish.commit, self._clock_ms())
        if self._plan.retain_s:
            keep_from_ms = self._clock_ms() - self._plan.retain_s * 1000
            self._collecting = target.unneeded(shipment.target, keep_from_ms)
        else:
            self._lock.release()

    def _drop(self, snapshot: _Snapshot) -> None:
        if snapshot.is_begun:
            self._lock.release()
        self.state.note_snapshotting(False)
        with self._wake:
            self._snapshot = None

    def _collect(self, shipment: Shipment, unneeded: Iterator[str]) -> None:
        try:
            path = next(unneeded, None)
            if path is not None:
                shipment.delete(path)
                return
        except (BackupError, ColdError) as failure:
            log.warning("Can't remove what is old: %s", failure)
        self._collecting = None
        self._lock.release()

    # -- what is said

    def _note_failure(self, failure: Exception) -> None:
        said = str(failure) or type(failure).__name__
        if isinstance(failure, (BackupError, ColdError)) and self._place.shown not in said:
            said = f"{self._place.shown}: {said}"
        if said != self.state.error:
            log.warning("Can't back up: %s", said)
        self.state.note_failure(said, self._clock_ms())

    def _tell(self, *, is_asked: bool = False) -> None:
        """Report to everyone who has the store open, if there is anything new."""
        self.state.note_waiting(self._waiting_bytes)
        if not is_asked and replace(self.state, as_of_ms=self._said.as_of_ms) == self._said:
            return
        try:
            backup_state.write(self._store.folder, self.state)
            self._said = replace(self.state)
        except OSError as failure:
            log.warning("Can't write the state of the backup: %s", failure)
