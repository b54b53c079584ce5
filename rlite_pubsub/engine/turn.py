"""The end of a turn, as far as keys are concerned; storage/agenda.py has the order of the whole.

A turn is all that became readable at once (a server), one pipeline (a program without a server), or what a timer did.

Laws kept here:
 5. acknowledge after commit: before any reply leaves. Where the commit fails, the replies become errors.
 1. Other processes that wait for keys are woken behind the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from rlite_pubsub.engine.refusal import take_back
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.storage import agenda as stages
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.blocking import Waiting
    from rlite_pubsub.engine.tracking.invalidation import TrackedKeys
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.keyspace.topic.followers import Followers
    from rlite_pubsub.storage.agenda import Agenda

log = logging.getLogger("rlite_pubsub")

Acknowledged: TypeAlias = list[tuple[CommandSession, bytes]]
"""Replies, still in the outboxes of their sessions."""


class TurnEnd:
    """Of one engine."""

    def __init__(self, agenda: Agenda, waiting: Waiting, tracked: TrackedKeys, followers: Followers) -> None:
        self._agenda = agenda
        self._keyspace: Keyspace | None = None
        self._waiting = waiting
        self._watch = waiting.watch
        self._followers = followers
        self.unacknowledged: Acknowledged = []  # replies of this turn that wait for its commit
        self.failure: Exception | None = None  # of the last turn that wrote, if it could not be committed
        self.withhold: Callable[[Acknowledged], None] | None = None
        """Called with the replies that a commit stands behind, before they go out."""
        self.on_commit: Callable[[float], None] | None = None
        """Called with the seconds that the commit of something to acknowledge took."""
        agenda.at(stages.READY, waiting.settle)
        agenda.at(stages.CHANGED_KEYS, tracked.end_turn)
        agenda.at(stages.KEYS, self._commit)
        agenda.at(stages.WAITS, self._record_waits)
        agenda.at(stages.FOLLOWED, self._tell_followers)

    def begin_with(self, keyspace: Keyspace) -> None:
        """These are the keys."""
        self._keyspace = keyspace
        self._agenda.at(stages.STRETCHES, keyspace.take_in)

    def _commit(self) -> None:
        keyspace = self._keyspace
        assert keyspace is not None
        watch = self._watch
        writes = keyspace.turn.writes
        began = perf_counter() if self.on_commit is not None else 0.0
        if writes and watch.waited:
            try:
                watch.before_commit(keyspace)
            except Exception as error:  # to see what it has changed is to write it, and the store may be full
                keyspace.fail(error)
        failure = keyspace.end_turn()
        if writes or failure is not None:
            self.failure = failure
        if failure is not None:
            log.warning("Can't commit: %s", failure)
            take_back(self.unacknowledged, failure)
            self.unacknowledged.clear()
            return
        if writes and (keyspace.touched or watch.waited):
            watch.after_commit(keyspace)
        if self.unacknowledged:
            if self.withhold is not None:
                self.withhold(self.unacknowledged.copy())
            self.unacknowledged.clear()
            if self.on_commit is not None:
                self.on_commit(perf_counter() - began)

    def _record_waits(self) -> None:
        assert self._keyspace is not None
        self._waiting.record(self._keyspace)

    def _tell_followers(self) -> None:
        assert self._keyspace is not None
        try:
            self._followers.pump(self._keyspace)
        except StoreError as failure:  # their offsets are as they were
            log.warning("Can't read what is followed: %s", failure)
