"""The end of a turn for keys: waiting clients are served, all is committed, and other processes are notified.

Laws kept here:
 5. acknowledge after commit: before any reply leaves. If the commit fails, the replies become errors.
 1. Other processes that wait for keys are woken after the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.refusal import Acknowledged, take_back
from rlite_pubsub.storage import agenda as stages
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.replicas.outgoing import Outgoing
    from rlite_pubsub.engine.tracking.announcing import Announcing
    from rlite_pubsub.engine.tracking.invalidation import TrackedKeys
    from rlite_pubsub.engine.waits.blocking import Waiting
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.topic.followers import Followers
    from rlite_pubsub.storage.agenda import Agenda

log: Final = logging.getLogger("rlite_pubsub")


class KeyCommit:
    """Commits the keys that a turn of one engine has changed."""

    def __init__(
        self,
        agenda: Agenda,
        keyspace: Keyspace,
        waiting: Waiting,
        tracked: TrackedKeys,
        followers: Followers,
        unacknowledged: Acknowledged,
        outgoing: Outgoing,
        announcing: Announcing | None = None,
    ) -> None:
        """`unacknowledged`: replies of this turn that wait for its commit. `announcing`: set if other processes track
        keys."""
        self._keyspace = keyspace
        self._outgoing = outgoing
        self._tell_replicas: Callable[[], None] = _nobody
        self._shared_waits = waiting.shared_waits
        self._followers = followers
        self._announcing = announcing
        self._unacknowledged = unacknowledged
        self._standing: Acknowledged = []  # replies to commands that were committed in the middle of the turn
        self._withhold: Callable[[Acknowledged], None] | None = None
        self._sync_first: Callable[[Acknowledged], None] | None = None
        self.failure: Exception | None = None  # of the last turn that wrote, if its commit failed
        self._timed: Callable[[float], None] | None = None
        keyspace.call_when_given_way(self._prepare, self._stand)
        agenda.at(stages.STRETCHES, keyspace.stretches.take_in)
        agenda.at(stages.READY, waiting.settle)
        agenda.at(stages.CHANGED_KEYS, tracked.end_turn)
        agenda.at(stages.KEYS, self._commit)
        agenda.at(stages.WAITS, waiting.record)
        agenda.at(stages.FOLLOWED, self._tell_followers)

    def withhold_by(
        self, withhold: Callable[[Acknowledged], None] | None, sync_first: Callable[[Acknowledged], None]
    ) -> None:
        """Call `withhold` with the replies that depend on a commit, before they go out; None lets them go. Replies of a
        turn that must be synced go to `sync_first` instead, which holds them until the disk has them."""
        self._withhold = withhold
        self._sync_first = sync_first

    def time_commits(self, timed: Callable[[float], None]) -> None:
        """Call `timed` with the duration, in seconds, of each commit that replies depend on."""
        self._timed = timed

    def tell_replicas_by(self, tell: Callable[[], None]) -> None:
        """Call `tell` when something has been committed for replicas."""
        self._tell_replicas = tell

    def _prepare(self) -> None:
        """Before a commit in the middle of the turn: write which keys it changes. Raises what that meets."""
        announcing = self._announcing
        self._keyspace.stretches.take_in()
        if announcing is not None and (announcing.is_owing or announcing.hint[0] != announcing.seen):
            announcing.before_commit(self._keyspace)

    def _stand(self) -> None:
        """After it: let the replies so far stand, whatever happens in the rest of the turn, and tell others."""
        self._standing += self._unacknowledged
        self._unacknowledged.clear()
        self._keyspace.news.stand()
        if self._announcing is not None and self._announcing.is_owing:
            self._announcing.after_commit()
        self._shared_waits.after_commit(self._keyspace, is_seen=False)

    def _commit(self) -> None:
        keyspace = self._keyspace
        shared_waits = self._shared_waits
        outgoing = self._outgoing
        if outgoing.is_on:
            outgoing.begin_owed()
        writes = keyspace.turn.writes
        began = perf_counter() if self._timed is not None else 0.0
        if writes and shared_waits.waited:
            try:
                shared_waits.before_commit(keyspace)
            except Exception as error:  # finding what it has changed means writing, and the store may be full
                keyspace.fail(error)
        announcing = self._announcing
        if announcing is not None and (announcing.is_owing or (writes and announcing.hint[0] != announcing.seen)):
            writes = True
            try:
                announcing.before_commit(keyspace)
            except Exception as error:
                keyspace.fail(error)
        failure = keyspace.end_turn()
        withhold = self._sync_first if keyspace.turn.wants_sync and keyspace.turn.answer_sync() else self._withhold
        if outgoing.has_written:
            self._tell_replicas()
        if writes or failure is not None:
            self.failure = failure
        if failure is not None:
            log.warning("Can't commit: %s", failure)
            take_back(self._unacknowledged, failure)
            self._unacknowledged.clear()
            if self._standing and withhold is not None:
                withhold(self._standing.copy())
            self._standing.clear()
            if announcing is not None:
                announcing.forget()
            if keyspace.news.stood:
                keyspace.news.show_stood()
            return
        if announcing is not None and announcing.is_owing:
            announcing.after_commit()
        if writes and (keyspace.touched or shared_waits.waited):
            shared_waits.after_commit(keyspace)
        if keyspace.news.stood:
            keyspace.news.stood.clear()
        if self._standing:
            self._unacknowledged[:0] = self._standing
            self._standing.clear()
        if self._unacknowledged or withhold is not self._withhold:
            if withhold is not None:
                withhold(self._unacknowledged.copy())
            self._unacknowledged.clear()
            if self._timed is not None:
                self._timed(perf_counter() - began)

    def _tell_followers(self) -> None:
        try:
            self._followers.pump(self._keyspace)
        except StoreError as failure:  # their offsets are as they were
            log.warning("Can't read what is followed: %s", failure)


def _nobody() -> None:
    """Do nothing: there are no replicas."""
