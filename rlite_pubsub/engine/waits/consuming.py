"""Sessions that consume: entries of a group are pushed to them while they have credit (TOPIC.CONSUME, like NSQ's RDY).

Promises:
 - The credit left is what the session gave, less what is pending with its consumer. So anything that ends or moves
   pending entries gives credit back, in any process, and nothing is counted beside the records.
 - A consumer with credit whose session takes more stands in line with XREADGROUP's waiters; once served, it goes to the
   end of the line. One without credit, or that is paused or stalled, keeps nobody behind it waiting.
 - Law 5: what is pushed leaves after the commit that makes it pending. If that fails, nothing is pushed.
 - Law 7: a session that has not taken all is not given more.

An acknowledgement of this process gives credit back in its own turn; one of another process is noticed by `cron`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from rlite_pubsub.engine.client import Client, Seated
from rlite_pubsub.engine.refusal import Acknowledged, answers
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Encoded, Push, Reply
from rlite_pubsub.storage.agenda import CREDITS, Agenda
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.access.user import User
    from rlite_pubsub.engine.waits.blocking import Waiting
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

RETRY_SECONDS = 1.0
"""After the store, or a block of the cold store, has refused: a push must not make anybody else's turn fail."""

PUSHED = Encoded(b"")
"""The answer of an attempt that has pushed."""


class Intake(Client):
    """The place in line of a session that consumes; the session itself waits for nothing."""

    def __init__(
        self, consuming: Consuming, session: Client, default: User, seat: Seated, credit: int, attempt: Attempt
    ) -> None:
        super().__init__(session.id, session.hub, session.connected_at, default)
        self._consuming = consuming
        self.session = session
        self.seat = seat
        self.credit = credit
        self.attempt = attempt
        self.retry_at = 0.0  # not before; by the stopwatch
        self.has_pushed = False  # just now, and leaves the line because of it
        self.is_over = False
        self.select(seat[0])
        self.want_no_replies()

    def allow(self, credit: int) -> None:
        """Set how much may be in flight."""
        self.credit = credit

    def left(self, group: Group) -> int:
        """Return how many more entries it may be given."""
        consumer = group.consumer(self.seat[3])
        return self.credit - (consumer.pending_count if consumer is not None else 0)

    def push(self, entries: Reply, unacknowledged: Acknowledged) -> Reply:
        """Push entries to the session, after the commit. Returns what an attempt must return."""
        session = self.session
        said = Push([b"topic-entries", *self.seat[1:], entries])
        part = answers(encode(said, session.protocol), 0)  # instead of it, not an error: nobody has asked
        session.send(part)
        unacknowledged.append((session, part))
        self.has_pushed = True
        return PUSHED

    def retry_from(self, at: float) -> None:
        """Stop trying until this time: something cannot be read or written."""
        self.retry_at = at

    def end(self) -> None:
        """End it: it gets nothing more."""
        self.is_over = True

    # -- as the line sees it

    def resume(self) -> None:
        has_pushed, self.has_pushed = self.has_pushed, False
        self._consuming.released(self, has_pushed=has_pushed)

    def close_after_reply(self) -> None:
        self.session.close_after_reply()

    def flush(self) -> None:
        """Do nothing: it sends nothing itself."""

    def close_now(self) -> None:
        """Close the session: it has no connection of its own."""
        self.session.close_now()


Attempt: TypeAlias = Callable[[Intake], Reply]
"""Pushes what there is, and answers with `Intake.push`; None: there is nothing. It raises CommandError where there will
be nothing any more."""


class Consuming:
    """All consuming sessions of one engine."""

    def __init__(
        self,
        keyspace: Keyspace,
        waiting: Waiting,
        agenda: Agenda,
        has_failed: Callable[[], bool],
        again: Callable[[], None],
        stopwatch: Callable[[], float],
    ) -> None:
        """`has_failed` says whether the last commit of keys failed. `again` asks for another turn soon."""
        self._keyspace = keyspace
        self._waiting = waiting
        self._agenda = agenda
        self._has_failed = has_failed
        self._again = again
        self._stopwatch = stopwatch
        self._aside: dict[Intake, None] = {}  # out of the line, until there is credit and the session takes more
        self._due: dict[Intake, None] = {}  # to be looked at
        self._next: dict[Intake, None] = {}  # to be looked at when what was pushed is committed
        self._seen = -1  # the commit up to which others' acknowledgements are known
        self._has_news = False
        agenda.at(CREDITS, self._look)

    def begin(self, session: Client, default: User, seat: Seated, credit: int, attempt: Attempt) -> None:
        """Begin to push entries to a session, up to this credit, which replaces an earlier one. `default`: the user of
        sessions that have not logged in."""
        if session.consumes is None:
            session.consumes = {}
        intake = session.consumes.get(seat)
        if isinstance(intake, Intake):
            intake.allow(credit)
        else:
            intake = session.consumes[seat] = Intake(self, session, default, seat, credit, attempt)
        self.look_at(intake)

    def end(self, session: Client, seat: Seated) -> bool:
        """End pushing; return False if there was none. Pending entries stay pending."""
        intake = session.consumes.pop(seat, None) if session.consumes else None
        if not isinstance(intake, Intake):
            return False
        intake.end()
        self._waiting.forget(intake)
        for where in (self._aside, self._due, self._next):
            where.pop(intake, None)
        return True

    def forget(self, session: Client) -> None:
        """Forget a closed session."""
        for seat in list(session.consumes or ()):
            self.end(session, seat)

    def drained(self, session: Client) -> None:
        """Note that a session's socket takes more again."""
        for intake in list((session.consumes or {}).values()):
            if intake in self._aside:
                self.look_at(intake)
        self._again()

    def look_at(self, intake: Intake) -> None:
        """Look at it at the end of the turn: something may have come for it."""
        if not intake.is_over:
            self._due[intake] = None
            self._agenda.due |= CREDITS

    def set_aside(self, intake: Intake) -> None:
        """Take it out of the line for now, because others wait behind it."""
        self._waiting.forget(intake)
        self._aside[intake] = None
        self._agenda.later |= CREDITS

    def hold_off(self, intake: Intake) -> None:
        """Try again a little later: something cannot be read or written."""
        intake.retry_from(self._stopwatch() + RETRY_SECONDS)
        self.set_aside(intake)

    def lose(self, intake: Intake) -> None:
        """End it because nothing will come any more. Its session is told, and learns why if it asks again."""
        session = intake.session
        if self.end(session, intake.seat):
            ended = Push([b"topic-unconsume", *intake.seat[1:]])
            session.send(encode(ended, session.protocol))

    def released(self, intake: Intake, *, has_pushed: bool) -> None:
        """Note that it has left the line, because it was served or because the line has ended."""
        if intake.is_over:
            return
        if not has_pushed:
            self.lose(intake)
            return
        self._stand(intake)
        self._next[intake] = None
        self._agenda.later |= CREDITS

    def cron(self) -> None:
        """Look for acknowledgements by other processes, and try again what was refused."""
        with suppress(StoreError):  # the next look meets it again
            newest = self._keyspace.last_commit()
            self._has_news = self._has_news or newest != self._seen
            self._seen = newest
        self._agenda.due |= CREDITS

    # -- once a turn, while somebody is out of credit

    @property
    def is_aside(self) -> bool:
        """True if one is out of the line, or was served just now."""
        return bool(self._aside or self._next)

    def _look(self) -> None:
        """Put those that can be served again back in line."""
        turn = self._keyspace.turn
        if turn.failure is not None:
            self._agenda.later |= CREDITS
            return
        due, self._due = self._due, {}
        now = self._stopwatch()
        if not self._agenda.later & CREDITS:  # this is the turn after the one that pushed
            pushed, self._next = self._next, {}
            for intake in pushed:
                if self._has_failed():
                    self.hold_off(intake)
                due[intake] = None
        if self._has_news and turn.txn is not None and not turn.writes:
            turn.end(commit=False)  # what is read from here on is as new as the commit that was seen
        try:
            has_changed, self._has_news = turn.writes or self._has_news, False
            for intake in [*due, *(each for each in self._aside if each not in due)]:
                if intake.retry_at > now:
                    self.set_aside(intake)
                elif intake in due or intake.retry_at or (has_changed and self._has_credit(intake)):
                    intake.retry_from(0.0)
                    self._take_up(intake)
        except StoreError as failure:
            log.warning("Can't look at what is consumed: %s", failure)
            self._aside.update(due)
        if self._aside:
            self._agenda.later |= CREDITS

    def _take_up(self, intake: Intake) -> None:
        """Put it in line and try to serve it; if it is paused, take it out."""
        self._aside.pop(intake, None)
        if not intake.credit:
            self._waiting.forget(intake)
            return
        self._stand(intake)
        self._keyspace.news.show((intake.seat[:2],))

    def _has_credit(self, intake: Intake) -> bool:
        if not intake.session.takes_more:
            return False
        database, key, name, _ = intake.seat
        topic = self._keyspace.find(database, key)
        group = group_of(topic, name) if isinstance(topic, Topic) else None
        return group is None or intake.left(group) > 0

    def _stand(self, intake: Intake) -> None:
        if intake.blocked is None:
            _, key, name, _ = intake.seat
            queues = [(b"group", name)]
            self._waiting.block(intake, [key], 0, lambda _: intake.attempt(intake), queues=queues)
