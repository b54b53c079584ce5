"""Sessions that wait for keys: which ones a change may serve, in which order, and which have timed out.

Promises:
 - What a command, or a whole EXEC, made ready is looked at right after it, in the same turn and the same transaction,
   so law 5 holds for those who are served, too: their replies leave after the commit, and are taken back if it fails.
 - First come, first served, for each key.
 - A released session goes on with what it has sent meanwhile, in order, before the turn ends.
 - A wait of 0 ms has no end. MULTI never waits.

Waiters of one queue (`queues` of `block`) want the same of a key: if there is nothing for the first of them, there is
nothing for those behind it, and they are not asked. In a shared queue all get the same reply, which is made once.
engine/waits/other_processes.py notices what other processes do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, TypeAlias

from rlite_pubsub.engine.refusal import failed
from rlite_pubsub.engine.waits.other_processes import LINGER_SECONDS, SharedWaits
from rlite_pubsub.engine.waits.waiter import Attempt, WaitEnds, Waiter
from rlite_pubsub.keyspace.news import Key
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, NULL_ARRAY, Error, Reply
from rlite_pubsub.storage.agenda import READY
from rlite_pubsub.storage.errors import StoreError, StoreHeld

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.counters import Stats
    from rlite_pubsub.engine.refusal import Acknowledged
    from rlite_pubsub.engine.replicas.outgoing import Outgoing
    from rlite_pubsub.engine.stats.slowlog import SlowLog
    from rlite_pubsub.engine.tracking.invalidation import TrackedKeys
    from rlite_pubsub.engine.tracking.notifications import Notifications
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.engine.waits.writer_wait import WriterWaits
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.hub import Hub

log: Final = logging.getLogger("rlite_pubsub")

_FOLLOWED: Final = object()
"""The queue, always empty, of a key that is followed."""
_MAY_BE_SLOW_US: Final = 1000
"""Calls quicker than this are of no interest to a coarse slow log."""


Queue: TypeAlias = dict[Waiter, None]
"""Oldest first."""


class Waiting:
    """All blocked sessions of an engine."""

    def __init__(
        self,
        keyspace: Keyspace,
        hub: Hub,
        stats: Stats,
        slowlog: SlowLog,
        unacknowledged: Acknowledged,
        writer_waits: WriterWaits,
        outgoing: Outgoing,
        notifications: Notifications,
        stopwatch: Callable[[], float],
        call_later: CallLater,
    ) -> None:
        """`unacknowledged`: the replies that wait for the turn's commit. `writer_waits` hears of keys that could not be
        changed for a waiting session."""
        self._keyspace = keyspace
        self._agenda = hub.agenda
        self._stats = stats
        self._slowlog = slowlog
        self._unacknowledged = unacknowledged
        self._writer_waits = writer_waits
        self._outgoing = outgoing
        self._notifications = notifications
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._note_followed: Callable[[tuple[int, bytes]], None] | None = None
        self._tracked: TrackedKeys | None = None
        self.keys: dict[Key, dict[Hashable, Queue]] = {}
        self._released: list[Client] = []  # to be resumed before the turn ends
        self._ends = WaitEnds(stopwatch, call_later)
        self.is_certain = True  # the key being looked at was signalled for sure
        self.known: object = None  # the last read that waited, for the next one that says the same (stream_read.py)
        self.shared_waits = SharedWaits(hub, self.keys)
        keyspace.news.show_only(self.keys)
        hub.call_on_bell(self.look)

    def block(
        self,
        session: Client,
        keys: Sequence[bytes],
        timeout_ms: int,
        attempt: Attempt,
        *,
        queues: Sequence[Hashable] | None = None,
        shared: bool = False,
        on_timeout: Reply = NULL_ARRAY,
    ) -> Reply:
        """Block the session until one of these keys, of its database, has something. The handler returns this method's
        result.

        `queues` has one for each key. Without it each session is asked. `shared` is for sessions that only read.
        """
        if session.deny_blocking:
            return on_timeout
        waiter = Waiter(self, session, attempt, on_timeout, shared, bool(timeout_ms))
        database = session.db
        waiting = self.keys
        places = waiter.places
        for place, name in enumerate(keys):
            key = database, name
            if key in places:
                continue
            queue: Hashable = waiter if queues is None else queues[place]
            there = waiting.get(key)
            if there is None:
                there = waiting[key] = {}
                self.shared_waits.begin(key, self._keyspace)
            line = there.get(queue)
            if line is None:
                there[queue] = {waiter: None}
            else:
                line[waiter] = None
            places[key] = queue
        session.wait_for(waiter)
        if timeout_ms:
            self._ends.add(self._stopwatch() + timeout_ms / 1000, waiter)
        return NO_REPLY

    def is_awaited(self, database: int, name: bytes) -> bool:
        """Return whether a session is blocked on this key. Followers do not count."""
        queues = self.keys.get((database, name))
        return queues is not None and (len(queues) > 1 or _FOLLOWED not in queues)

    def is_watched(self, database: int, name: bytes) -> bool:
        """Return whether a session is blocked on this key or follows it."""
        return (database, name) in self.keys

    def tell_followed(self, note: Callable[[tuple[int, bytes]], None]) -> None:
        """Call `note` with each key that is ready and followed."""
        self._note_followed = note

    def tell_trackers(self, tracked: TrackedKeys) -> None:
        """Notify a session that also tracks keys of its own changes after its answer."""
        self._tracked = tracked

    def follow(self, key: Key) -> None:
        """Notify followers whenever this key is ready (keyspace/topic/followers.py)."""
        if key not in self.keys:
            self.keys[key] = {}
            self.shared_waits.begin(key, self._keyspace)
        self.keys[key][_FOLLOWED] = {}

    def unfollow(self, key: Key) -> None:
        """Stop notifying followers of this key."""
        there = self.keys[key]
        del there[_FOLLOWED]
        if not there:
            del self.keys[key]
            self.shared_waits.end(key)

    def forget(self, session: Client) -> None:
        """Forget a closed session."""
        waiter = session.blocked
        if isinstance(waiter, Waiter):
            self._leave(waiter)
            session.end_wait()

    # -- other processes

    def record(self) -> None:
        """Record what is waited for, for other processes, and look once more. If that fails, look now and then."""
        if not self.shared_waits.record(self._keyspace):
            self._call_later(LINGER_SECONDS, self.look)

    def look(self) -> None:
        """Look for changes by others; the turn's end serves."""
        try:
            self.shared_waits.recheck(self._keyspace)
        except StoreError as failure:
            log.warning("Can't look at what is waited for: %s", failure)

    def cron(self, now: float) -> None:
        """End waits now and then even without a timer."""
        self._ends.expire(now)
        self.shared_waits.sweep(now)

    # -- being served

    def serve(self) -> None:
        """Look at the keys that have become ready. Call it after a command that may have made some ready."""
        keyspace = self._keyspace
        waiting = self.keys
        if not waiting:
            keyspace.ready.clear()
            self.shared_waits.only_changed.clear()
            return
        while keyspace.ready:
            ready = list(keyspace.ready)
            keyspace.ready.clear()
            for key in ready:
                for one in [key] if key[1] is not None else [one for one in waiting if one[0] == key[0]]:
                    self.is_certain = one not in self.shared_waits.only_changed
                    self._serve_key(one)
            self.shared_waits.only_changed.clear()

    def _serve_key(self, key: Key) -> None:
        queues = self.keys.get(key)
        if queues is not None:
            name = key[1]
            assert name is not None
            if _FOLLOWED in queues:
                assert self._note_followed is not None
                self._note_followed((key[0], name))
            try:
                for queue in list(queues.values()):
                    self._serve_queue(name, queue)
            except StoreHeld:
                self._writer_waits.wait_for(key)

    def _serve_queue(self, name: bytes, queue: Queue) -> None:
        """Serve a queue from the front, up to the first session for which there is nothing. One that leaves the line
        instead keeps nobody waiting. Raises StoreHeld."""
        for waiter in list(queue):
            if waiter.is_over:
                continue
            tracked = self._tracked if waiter.session.tracking is not None else None
            if tracked is None:
                if not self._serve_waiter(name, queue, waiter) and not waiter.is_over:
                    return
                continue
            outer = tracked.begin_for(waiter.session)
            try:
                if not self._serve_waiter(name, queue, waiter):
                    return
            finally:
                tracked.end_for(waiter.session, outer)

    def _serve_waiter(self, name: bytes, queue: Queue, waiter: Waiter) -> bool:
        """Serve one waiter; return whether there was something for it. Raises StoreHeld."""
        start = perf_counter_ns()
        outgoing = self._outgoing
        is_told = outgoing.is_on
        if is_told:
            outgoing.begin_unit()
        try:
            reply = waiter.attempt(name)
            if is_told and reply is not None and waiter.command is not None:
                session = waiter.session
                outgoing.executed(session.id, session.db, waiter.command, waiter.args, reply)
        except CommandError as refusal:
            reply = Error(refusal.text)
        except StoreHeld:
            raise
        except Exception as failure:
            assert waiter.command is not None
            reply = failed(self._keyspace, waiter.command, failure)
        if reply is None:
            return False
        is_error = reply.__class__ is Error
        if is_error:
            self._stats.count_error(reply)
        protocol = waiter.session.protocol
        part = encode(reply, protocol)
        served = [waiter]
        if waiter.shared and not is_error and len(queue) > 1:
            served = [alike for alike in queue if alike.session.protocol == protocol]
        for each in served:
            self._release(each, part)
        if self._notifications.is_holding:
            self._notifications.release()
        self._count(served, (perf_counter_ns() - start) // 1000, is_error=is_error)
        return True

    def _count(self, waiters: list[Waiter], served_us: int, *, is_error: bool) -> None:
        """Count waiters as answered, in this much time in all."""
        command = waiters[0].command
        if command is None:
            return
        count = len(waiters)
        called_us = [waiter.duration_us for waiter in waiters]
        self._stats.count_unblocked(command, count, sum(called_us) + served_us, is_error)
        if not self._slowlog.coarse or max(called_us) + served_us >= _MAY_BE_SLOW_US:
            for waiter in waiters:
                self._slowlog.note(waiter.session, command, waiter.args, waiter.duration_us + served_us // count)

    # -- coming to an end

    def end(self, waiter: Waiter, reply: Reply, *, by_request: bool = False) -> None:
        """Release a session that has not been served."""
        if reply.__class__ is Error:
            self._stats.count_error(reply)
        self._release(waiter, encode(reply, waiter.session.protocol))
        if by_request:
            self._count([waiter], 0, is_error=True)

    def end_all(self, reply: Reply) -> None:
        """Release all of them, and then close their sessions: nobody is served any more."""
        lines = [line for queues in self.keys.values() for line in queues.values()]
        for waiter in dict.fromkeys(waiter for line in lines for waiter in line):
            self.end(waiter, reply, by_request=True)
            waiter.session.close_after_reply()

    def end_where(self, refusal: Callable[[bytes], Reply]) -> None:
        """Release those waiting for a key for which `refusal` returns a reply; they go on with the requests they have
        sent."""
        for key in list(self.keys):
            reply = refusal(key[1]) if key[1] is not None else None
            for line in list(self.keys.get(key, {}).values()) if reply is not None else ():
                for waiter in list(line):
                    self.end(waiter, reply, by_request=True)

    def _release(self, waiter: Waiter, part: bytes) -> None:
        """Send the reply that ends a wait. Law 5 applies, as to any reply that a turn's commit stands behind."""
        self._leave(waiter)
        session = waiter.session
        session.end_wait()
        self._released.append(session)
        self._agenda.due |= READY
        if session.replies_off or session.skip_replies & 1:
            session.skip_replies >>= 1
            return
        session.send(part)
        keyspace = self._keyspace
        if keyspace.turn.writes or keyspace.turn.failure is not None:
            self._unacknowledged.append((session, part))

    def _leave(self, waiter: Waiter) -> None:
        waiter.is_over = True
        if waiter.is_timed:
            self._ends.drop()
        waiting = self.keys
        for key, queue in waiter.places.items():
            there = waiting[key]
            line = there[queue]
            del line[waiter]
            if not line:
                del there[queue]
                if not there:
                    del waiting[key]
                    self.shared_waits.end(key)
        waiter.places.clear()  # it may be its own queue, and would be there until Python looks for cycles

    def settle(self) -> None:
        """Serve, and let released sessions go on, until nothing is left to do. Called at the turn's end."""
        keyspace = self._keyspace
        while self._released or keyspace.ready:
            released, self._released = self._released, []
            for session in released:
                if session.blocked is None:
                    session.go_on()
            if keyspace.ready:
                self.serve()
