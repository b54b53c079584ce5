"""Durable subscribers and the sessions that are attached to them.

A durable subscriber has a name. Its subscriptions and its mailbox are in data.mdb, and outlive the session, the process
and the machine's reboot. It is attached to at most one session of all processes: the newest. What it holds is held by
the session too, but no message reaches that session except through the mailbox, in the mailbox's order; so what came
while it was away and what comes now are one sequence, without a gap or a duplicate between them (law 6).

Laws kept here:
 2. subscribe: write the records -> COMMIT -> reply.
How long one may be away, and its end, is lifetimes.py's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from rlite_pubsub.durable.feed import Feed
from rlite_pubsub.durable.lifetimes import Lifetimes, Wanted, shown
from rlite_pubsub.durable.mailbox import DurablePost, enforce, is_over
from rlite_pubsub.pubsub.kinds import KINDS, PATTERNS, Kind
from rlite_pubsub.pubsub.post import Post
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.agenda import FEEDS
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.names import attachments, durables, receivers, subscriptions
from rlite_pubsub.storage.names.attachments import Attachment
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

CLIENT_NAME = b"durable:"
"""What the name of a connection begins with that is attached when it first subscribes."""
TAKEN_OVER = "taken over by a newer connection"
SEEN_SECONDS = 30.0
SWEEP_SECONDS = 1.0
_BY_BYTE = {receivers.DATABASES[kind.database].byte: kind for kind in KINDS}


class DurableGone(StoreError):
    """The durable subscriber was deleted while a session was attached to it."""

    def __init__(self, name: bytes) -> None:
        super().__init__(f"durable subscriber {shown(name)} was deleted")


class Durables:
    """All durable subscribers, as one process deals with them."""

    def __init__(
        self,
        store: Store,
        post: Post,
        mail: DurablePost,
        own: Callable[[], int],
        clock: Callable[[], float] = time.time,
        feed: Callable[[Durable, Session], Feed] = Feed,
        call_soon: Callable[[], None] = lambda: None,
    ) -> None:
        """`call_soon` asks for another turn."""
        self._store = store
        self._post = post
        self.mail = mail
        self._own = own
        self._clock = clock
        self._new_feed = feed
        self.lifetimes = Lifetimes(store, post, mail, clock)
        self.feeds: dict[int, Feed] = {}  # of sessions of this process, by the durable subscriber's id
        self.due: dict[int, None] = {}  # feeds that may have something to say
        self._departed: dict[int, Feed] = {}  # whose sessions have ended, and who knows yet what has been read
        self.call_soon = call_soon
        self.takeovers = 0
        self._ended_gaps = 0  # of feeds that have ended
        self._swept_at = 0.0
        post.watch(self.feeds.keys())

    @property
    def gaps(self) -> int:
        """Gap messages said."""
        return self._ended_gaps + sum(feed.gaps for feed in self.feeds.values())

    def check_writers(self) -> None:
        """Check that the next transactions can be written. Raises StoreHeld."""
        self._store.data.check_write()
        self._store.live.check_write()

    # -- a session comes

    def attach(self, session: Session, name: bytes, wanted: Wanted | None = None) -> Durable:
        """Attach a session to the subscriber of this name, created if necessary. A session that was attached before is
        closed.

        Nothing is said to the session before it is opened. Raises StoreError.
        """
        self.check_writers()
        asked = wanted or Wanted()
        durable, is_changed = self.lifetimes.find_or_make(name, asked)
        failpoint("durable-made")
        feed = _feed_of(session)
        if feed is not None and feed.durable.id == durable.id:
            feed.renew(durable)
        else:
            self._take_over(session, durable)
        if is_changed:
            self.lifetimes.announce()
        return durable

    def subscribe(self, session: Session, kind: Kind, names: Iterable[bytes]) -> list[bytes]:
        """Let its subscriber hold these names; those of them that are new.

        The first time the session is opened: it holds what its subscriber holds, and is sent what waits. Raises
        StoreError, and then nothing is changed.
        """
        feed = _feed_of(session)
        assert feed is not None
        if feed.is_open:
            return self._hold(session, kind, names, 1)
        for byte, name in self._store.data.read(lambda txn: subscriptions.held(txn, feed.durable.id)):
            session.names[_BY_BYTE[byte].index][name] = None
        try:
            new = self._hold(session, kind, names, 1)
            self.lifetimes.announce()  # the process that was attached last may have died between its commit and this
        except StoreError:
            session.forget_names()
            raise
        feed.open()
        self._note_due(feed)
        return new

    def unsubscribe(self, session: Session, kind: Kind, names: Iterable[bytes]) -> list[bytes]:
        """Let its subscriber go of these names, and of what waits under them; those that it held. Raises StoreError."""
        return self._hold(session, kind, names, 0)

    def _hold(self, session: Session, kind: Kind, names: Iterable[bytes], count: int) -> list[bytes]:
        feed = _feed_of(session)
        assert feed is not None
        held = session.names[kind.index]
        names = [name for name in dict.fromkeys(names) if (name in held) != bool(count)]
        if not names:
            return names

        def work(txn: Txn) -> tuple[int, int, bool]:
            if not durables.exists(txn, feed.durable):
                raise DurableGone(feed.durable.name)
            before = routes_version(txn)
            receivers.set_counts(txn, feed.durable.id, dict.fromkeys(((kind.database, name) for name in names), count))
            return before, routes_version(txn), subscriptions.are_any(txn)

        before, after, are_any = self._store.data.write(work, freeing=not count)
        if kind is not PATTERNS:
            self.mail.routes.saw_own_names(before, after, are_any)
        failpoint("durable-held")
        self.lifetimes.announce()
        for name in names:
            if count:
                held[name] = None
            else:
                del held[name]
        return names

    # -- a session goes

    def detach(self, session: Session) -> bool:
        """The session is gone, or wants no more. Its subscriber is away from now on, unless it is elsewhere already.

        True if it is looked at for a while to see what its peer has read of what was sent last. Who attaches here
        meanwhile gets no reply before that is known.
        """
        feed = _feed_of(session)
        if feed is None:
            return False
        durable = feed.durable
        self._let_go(feed)
        here = Attachment(self._own(), session.id)
        is_open = False
        try:
            is_open = feed.depart(self._store.data, self._clock())
            if is_open:
                self._departed[durable.id] = feed
            if self._store.live.write(lambda txn: attachments.remove(txn, durable.id, here), freeing=True):
                failpoint("durable-detached")
                self.lifetimes.note_seen(durable)
        except StoreError as failure:
            log.warning("Can't note that durable subscriber %s is away: %s", shown(durable.name), failure)
        return is_open

    def detach_name(self, name: bytes) -> bool:
        """Close the session that is attached, wherever it is. False if there is none. Raises StoreError."""
        self.check_writers()
        durable = self._store.data.read(lambda txn: durables.get(txn, name))
        if durable is None:
            return False
        where = self._store.live.read(lambda txn: attachments.get(txn, durable.id))
        if where is None:
            return False
        feed = self.feeds.get(durable.id)
        if feed is not None:
            self._close(feed, "detached by SUBSCRIBER.DETACH")
            return True
        self._store.live.write(lambda txn: attachments.remove(txn, durable.id, where), freeing=True)
        self.lifetimes.note_seen(durable)
        self._post.ring(where.subscriber)
        return True

    def delete(self, name: bytes) -> bool:
        """Remove the subscriber with all that is its own, and close its session. False if there is none. Raises
        StoreError."""
        self.check_writers()
        durable = self.lifetimes.delete(name)
        if durable is None:
            return False
        feed = self.feeds.get(durable.id)
        if feed is not None:
            self._close(feed, "deleted by SUBSCRIBER.DELETE")
            return True
        where = self._store.live.read(lambda txn: attachments.get(txn, durable.id))
        if where is not None:
            self._store.live.write(lambda txn: attachments.remove(txn, durable.id), freeing=True)
            self._post.ring(where.subscriber)
        return True

    # -- turns

    def pump(self) -> None:
        """Say what has come: at the turn's end, after the commit and before the flush. Never fails."""
        self.due.update(dict.fromkeys(self._post.take_arrived() & self.feeds.keys()))
        for id in list(self.due):
            if id in self._departed:
                del self.due[id]
                continue
            feed = self.feeds[id]
            try:
                if feed.is_due_to_settle:
                    feed.settle(self._store.data, self._clock())
                if not feed.pump(self._store.data):
                    del self.due[id]
                self._enforce(feed)
            except StoreError as failure:
                self.due.pop(id, None)  # the cron tries again
                log.warning("Can't read the mailbox of durable subscriber %s: %s", shown(feed.durable.name), failure)

    def look(self) -> None:
        """The bell was rung, or may have been: see what has come, and who has been taken over. Never fails."""
        if not self.feeds:
            return
        try:
            found = self._store.live.read(lambda txn: {id: attachments.get(txn, id) for id in self.feeds})
        except StoreError as failure:
            log.warning("Can't see who is attached: %s", failure)
            return
        own = self._own()
        for id, where in found.items():
            feed = self.feeds.get(id)
            if feed is None or where == (own, feed.session.id):
                continue
            if where is not None:
                feed.end(TAKEN_OVER)
                self._let_go(feed)  # what has arrived here since then may not be known there: it must not be removed
            self._close(feed, TAKEN_OVER if where else "detached or deleted")
        self.due.update(dict.fromkeys(self.feeds))
        self._post.agenda.due |= FEEDS

    def drained(self, session: Session) -> None:
        """React to a socket that takes again."""
        feed = _feed_of(session)
        if feed is not None:
            self._note_due(feed)

    def cron(self) -> None:
        """Do what must happen some times a second. Never fails."""
        now = self._clock()
        try:
            for feed in list(self._departed.values()):
                if feed.is_known(self._store.data, now):
                    self._conclude(feed)
            for feed in list(self.feeds.values()):
                if feed.is_owing and feed.settle(self._store.data, now):
                    self._note_due(feed)
                patience = min(SEEN_SECONDS, feed.durable.ttl_s / 4) if feed.durable.ttl_s else SEEN_SECONDS
                if not feed.seen <= now < feed.seen + patience:
                    feed.note_seen(now)
                    self.lifetimes.note_seen(feed.durable)
            if not self._swept_at <= now < self._swept_at + SWEEP_SECONDS:  # or the clock was set back
                self._swept_at = now
                self.lifetimes.sweep(int(now * 1000))
        except StoreError as failure:
            log.warning("Can't keep the durable subscribers' records: %s", failure)

    def close(self) -> None:
        """Close at the process's end: what is not known to have been read stays."""
        for feed in list(self._departed.values()):
            self._conclude(feed)

    # -- inside

    def _conclude(self, departed: Feed) -> None:
        """Finish with a departed session: it is known what has been read, or no longer matters, and a session that has
        attached since may get the rest."""
        id = departed.durable.id
        del self._departed[id]
        departed.session.let_go()
        if id in self.feeds:
            self._note_due(self.feeds[id])

    def _note_due(self, feed: Feed) -> None:
        self.due[feed.durable.id] = None
        self._post.agenda.due |= FEEDS

    def _take_over(self, session: Session, durable: Durable) -> None:
        before = self.feeds.get(durable.id)
        if before is not None:
            self.takeovers += 1
            before.end(TAKEN_OVER)
            before.depart(self._store.data, self._clock())
            self._let_go(before)
            self._close(before, TAKEN_OVER)
        here = Attachment(self._own(), session.id)
        where = self._store.live.write(lambda txn: attachments.put(txn, durable.id, here))
        failpoint("durable-attached")
        if where is not None and where.subscriber != here.subscriber:
            self.takeovers += 1
            self._post.ring(where.subscriber)
        feed = self.feeds[durable.id] = self._new_feed(durable, session)
        session.begin_feed(feed)
        feed.note_seen(self._clock())

    def _close(self, feed: Feed, reason: str) -> None:
        session = feed.session
        feed.end(reason)
        log.warning("Durable subscriber %s: client id=%d is closed, %s.", shown(feed.durable.name), session.id, reason)
        self.detach(session)
        session.abort()

    def _let_go(self, feed: Feed) -> None:
        self._ended_gaps += feed.gaps
        self.feeds.pop(feed.durable.id, None)
        self.due.pop(feed.durable.id, None)
        feed.withdraw()
        feed.session.end_feed()

    def _enforce(self, feed: Feed) -> None:
        durable = feed.durable
        if not durable.is_limited:
            return
        if not self._store.data.read(lambda txn: is_over(txn, durable, feed.position)):
            return
        since_ms = int(self._clock() * 1000)
        over = self._store.data.write(lambda txn: enforce(txn, durable, feed.position, since_ms), freeing=True)
        if over.messages:
            self.mail.note_dropped([over])
            self.due[durable.id] = None


def _feed_of(session: Session) -> Feed | None:
    feed = session.feed
    assert feed is None or isinstance(feed, Feed)
    return feed
