"""The replicas that are attached to this server: each is sent a file, and then the store's stream from where that ends.

Laws kept here:
 7. publishers never wait for subscribers, nor for replicas: one that does not read is behind in the stream, which keeps
    for it as much as `client-output-buffer-limit replica` allows; then it is cut off.
 8. what is lost is said: a replica whose place in the stream is gone is cut off, and starts over.

A replica is sent a piece when it has taken the one before, so no more than that waits in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rlite_pubsub.engine.replicas.outgoing import GET_ACK, PING
from rlite_pubsub.engine.replicas.replica import ONLINE, STATES, Introduction, Replica
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NO_REPLY, Reply
from rlite_pubsub.storage.agenda import REPLICAS
from rlite_pubsub.storage.commons import replica_stream
from rlite_pubsub.storage.commons.replica_stream import FOREVER, ReplicaRecord, Stream
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.engine.replicas.outgoing import Outgoing
    from rlite_pubsub.engine.settings.settings import Settings
    from rlite_pubsub.engine.waits.alarm import CallLater
    from rlite_pubsub.storage.agenda import Agenda
    from rlite_pubsub.storage.environment import Environment, Txn

log = logging.getLogger("rlite_pubsub")

_PIECE_BYTES = 192 << 10
_REPORT_S = 1.0
_GRACE_MS = 30_000
"""Added to `repl-backlog-ttl`: so late may the next report be."""
NO_SERVER = b"ERR only a server has replicas: this is a program that has opened the store by itself"
NO_SOCKET = b"ERR a file can be sent only over a connection of a server"


class FileWish(NamedTuple):
    """What a replica is to be sent before the stream."""

    is_marked: bool
    """Straight from the store's snapshot, with a mark at its end in the place of its size."""
    says_position: bool
    """+FULLRESYNC comes first."""


SyncBeside = Callable[[int, FileWish, Callable[[int | None], None]], None]
"""Has a process send a file to the peer of this descriptor, which it closes, and calls back in a turn with the
offset in the stream that the file stands for; None: it could not be sent."""


class Shown(NamedTuple):
    """A replica, as INFO and ROLE show it."""

    address: bytes
    port: int
    state: str
    offset: int
    lag_s: int


class Counters(Protocol):
    """What is counted of replicas."""

    sync_full: int
    sync_partial_ok: int
    sync_partial_err: int


class Replicas:
    """One engine's. Other processes' are known by what these report."""

    def __init__(
        self,
        settings: Settings,
        data: Environment,
        live: Environment | None,
        outgoing: Outgoing,
        agenda: Agenda,
        counters: Counters,
        own: Callable[[], int],
        ring: Callable[[int], None],
        nudge: Callable[[], None],
        sync_beside: SyncBeside | None,
        clock_ms: Callable[[], int],
        stopwatch: Callable[[], float],
        call_later: CallLater,
    ) -> None:
        """`own` subscriber of this process, how others are woken, and how all are made to look whether there are
        replicas. Without `sync_beside` none can be attached."""
        self._settings = settings
        self._data = data
        self._live = live
        self._outgoing = outgoing
        self._agenda = agenda
        self._counters = counters
        self._own = own
        self._ring = ring
        self._nudge = nudge
        self._sync_beside = sync_beside
        self._clock_ms = clock_ms
        self._stopwatch = stopwatch
        self._call_later = call_later
        self._replicas: dict[int, Replica] = {}  # by session
        self._introduced: dict[int, Introduction] = {}
        self._report_at = 0.0
        self._on_acknowledged: Callable[[], None] = _nobody
        self._was_named = False  # what stays behind
        agenda.at(REPLICAS, self._feed)

    def call_when_acknowledged(self, acknowledged: Callable[[], None]) -> None:
        """Call `acknowledged` when a replica of this process has said how far it is."""
        self._on_acknowledged = acknowledged

    # -- attaching

    def introduce(self, session: Client) -> Introduction:
        """Return what it says of itself by REPLCONF, to be filled in."""
        return self._introduced.setdefault(session.id, Introduction())

    def attach(self, session: Client, history: bytes, offset: int, *, says_position: bool) -> Reply:
        """The session is a replica's from now on: it is sent what comes behind this offset in that history, or else all
        there is. Raises CommandError, StoreError."""
        if session.id in self._replicas:
            return NO_REPLY
        if self._sync_beside is None or self._live is None:
            raise CommandError(NO_SERVER)
        about = self.introduce(session)
        replica = Replica(session, about, 0, self._stopwatch(), says_how_far=says_position)
        current = self._live.read(replica_stream.current_history)
        stream = self._data.write(lambda txn: self._begin(txn, replica, current, history, offset))
        if stream.history != current:
            self._live.write(lambda live: replica_stream.go_on_with(live, stream.history))
        self._nudge()  # or who only publishes would not know
        replica.join(stream.history)
        self._replicas[session.id] = replica
        session.become_replica()
        if replica.state == ONLINE:
            self._counters.sync_partial_ok += 1
            log.info("Partial resynchronisation of replica %s from offset %d", session.address, offset)
            self._agenda.due |= REPLICAS
            known = b" " + stream.history if about.knows_histories else b""
            session.send(b"+CONTINUE%b\r\n" % known)
            return NO_REPLY
        if history and history != b"?":
            self._counters.sync_partial_err += 1
        self._counters.sync_full += 1
        self._name_what_stays()
        self._call_later(0.0, lambda: self._send_file(replica))  # behind what was answered before
        return NO_REPLY

    def _begin(self, txn: Txn, replica: Replica, current: bytes | None, history: bytes, offset: int) -> Stream:
        """`current`: the history that live.mdb names."""
        now_ms = self._clock_ms()
        known = replica_stream.get(txn)
        if known is not None and (known.until_ms <= now_ms or known.history != current):
            replica_stream.end(txn)
        stream = replica_stream.begin(txn, self._settings["repl-backlog-size"], self._until_ms(now_ms))
        if history == stream.history and stream.begins <= offset <= stream.ends:
            replica.go_on_from(offset, now_ms)
        else:
            replica.sent = stream.ends
            replica_stream.select_anew(txn, stream)
        replica_stream.forget_dead(txn, now_ms)
        self._put(txn, replica, now_ms)
        return stream

    def _until_ms(self, now_ms: int, grace_ms: int = _GRACE_MS) -> int:
        ttl_s: int = self._settings["repl-backlog-ttl"]
        return min(now_ms + ttl_s * 1000 + grace_ms, FOREVER) if ttl_s else FOREVER

    def _put(self, txn: Txn, replica: Replica, now_ms: int) -> None:
        replica_stream.put_replica(txn, replica.name, replica.record(now_ms, self._most_bytes, self._own()))

    @property
    def _most_bytes(self) -> int:
        hard: int = self._settings["client-output-buffer-limit"].replica[0]
        return hard or FOREVER

    def _name_what_stays(self) -> None:
        if not self._was_named:
            self._was_named = True
            log.warning(
                "Replicas have no settings of topics, retention, pauses, deferred or released entries, ephemeral "
                "topics, fields that expire or durable subscribers: these stay here."
            )

    def _send_file(self, replica: Replica) -> None:
        session = replica.session
        if self._replicas.get(session.id) is not replica:
            return
        descriptor = session.lend_socket()
        if descriptor is None or self._sync_beside is None:
            session.send(b"-" + NO_SOCKET + b"\r\n")
            session.close_after_reply()
            return
        is_marked = bool(
            replica.says_how_far and replica.about.takes_marked_files and self._settings["repl-diskless-sync"]
        )
        replica.begin_file()
        log.info("Full resynchronisation of replica %s", session.address)
        wish = FileWish(is_marked, replica.says_how_far)
        self._sync_beside(descriptor, wish, lambda offset: self._sent_file(replica, offset, is_marked=is_marked))

    def _sent_file(self, replica: Replica, offset: int | None, *, is_marked: bool) -> None:
        if self._replicas.get(replica.session.id) is not replica:
            return
        if offset is None:
            self._cut(replica, "its file could not be sent")
            return
        replica.end_file(offset, self._clock_ms(), is_marked=is_marked)
        self._report([replica])
        self._agenda.due |= REPLICAS

    def forget(self, session: Client) -> None:
        """The session is gone."""
        self._introduced.pop(session.id, None)
        replica = self._replicas.pop(session.id, None)
        if replica is not None:
            log.info("Connection with replica %s lost", session.address)
            self._call_later(0.0, lambda: self._write(lambda txn: self._release(txn, replica)))

    def _release(self, txn: Txn, replica: Replica) -> None:
        now_ms = self._clock_ms()
        replica_stream.forget_replica(txn, replica.name)
        stream = replica_stream.get(txn)
        if stream is not None:
            are_others = any([other.until_ms > now_ms for _, other in replica_stream.replicas(txn)])
            until_ms = self._until_ms(now_ms, _GRACE_MS if are_others else 0)
            replica_stream.begin(txn, stream.kept_bytes, until_ms)

    def _cut(self, replica: Replica, why: str) -> None:
        log.warning("Replica %s is cut off: %s", replica.session.address, why)
        replica.session.close_now()

    # -- sending

    def tell(self) -> None:
        """Something was committed for replicas: send it, and have other processes send it to theirs."""
        self._outgoing.has_written = False
        if self._replicas:
            self._agenda.due |= REPLICAS
        if self._outgoing.senders:
            own = self._own()
            for subscriber in self._outgoing.senders:
                if subscriber != own:
                    self._ring(subscriber)

    def look(self) -> None:
        """Another process may have committed something."""
        if self._replicas:
            self._agenda.due |= REPLICAS

    def drained(self, session: Client) -> None:
        """A replica has taken what it was sent."""
        if session.id in self._replicas:
            self._agenda.due |= REPLICAS

    def _feed(self) -> None:
        has_more = False
        for replica in list(self._replicas.values()):
            if replica.state != ONLINE or not replica.session.takes_more:
                continue
            at, history = replica.sent, replica.history
            try:
                data = self._data.read(lambda txn: replica_stream.read(txn, history, at, _PIECE_BYTES))  # noqa: B023
            except StoreError as failure:
                log.warning("Can't read what replicas are to be told: %s", failure)
                return
            if data is None:
                self._cut(replica, "it was too slow, and what it needs next is not kept any more")
            elif data:
                replica.session.send(data)
                replica.has_sent(len(data), asks=GET_ACK in data)
                has_more = has_more or len(data) >= _PIECE_BYTES
        if has_more:
            self._call_later(0.0, self.look)

    # -- what they say

    def acknowledge(self, session: Client, offset: int) -> None:
        """REPLCONF ACK."""
        replica = self._replicas.get(session.id)
        if replica is None:
            return
        was_online = replica.state == ONLINE
        was_asked = replica.acknowledge(offset, self._stopwatch(), self._clock_ms())
        if not was_online and replica.state == ONLINE:
            self._agenda.due |= REPLICAS
        if was_asked:
            self._call_later(0.0, lambda: self._reported(replica))

    def _reported(self, replica: Replica) -> None:
        self._report([replica])
        self._on_acknowledged()

    # -- now and then

    def cron(self) -> None:
        """Ten times a second."""
        now = self._stopwatch()
        if not self._outgoing.is_on and not self._replicas or now < self._report_at:
            return
        self._report_at = now + _REPORT_S
        self._agenda.due |= REPLICAS
        for replica in list(self._replicas.values()):
            self._check(replica, now)
        stream = self._data.read(replica_stream.get)
        if self._replicas:
            self._write(self._renew)
            if stream is not None and self._clock_ms() - stream.written_ms >= self._settings[
                "repl-ping-replica-period"
            ] * 1000:
                self.mark(PING)
        elif stream is not None and stream.until_ms <= self._clock_ms():
            self._write(self._end_in_time)
            self._nudge()

    def _check(self, replica: Replica, now: float) -> None:
        if replica.state != ONLINE:
            return
        if replica.says_how_far and now - replica.acknowledged_at > self._settings["repl-timeout"]:
            self._cut(replica, "it has said nothing for too long")
            return
        _, soft_bytes, soft_s = self._settings["client-output-buffer-limit"].replica
        behind = self._outgoing.ends - replica.sent
        if self._most_bytes < behind:
            self._cut(replica, "it does not read what it is sent, and is too far behind")
        elif not soft_bytes or behind <= soft_bytes:
            replica.fall_behind(None)
        elif replica.behind_since is None:
            replica.fall_behind(now)
        elif now - replica.behind_since > soft_s:
            self._cut(replica, "it has been far behind for too long")

    def _renew(self, txn: Txn) -> None:
        now_ms = self._clock_ms()
        if replica_stream.get(txn) is not None:
            replica_stream.begin(txn, self._settings["repl-backlog-size"], self._until_ms(now_ms))
            for replica in self._replicas.values():
                self._put(txn, replica, now_ms)

    def _end_in_time(self, txn: Txn) -> None:
        now_ms = self._clock_ms()
        stream = replica_stream.get(txn)
        if stream is not None and stream.until_ms <= now_ms:
            replica_stream.end(txn)

    def _report(self, some: list[Replica]) -> None:
        now_ms = self._clock_ms()

        def work(txn: Txn) -> None:
            for replica in some:
                if replica.session.id in self._replicas:
                    self._put(txn, replica, now_ms)

        self._write(work)

    def _write(self, work: Callable[[Txn], None]) -> None:
        try:
            self._data.write(work)
        except StoreError as failure:
            log.debug("Can't report replicas now: %s", failure)

    def mark(self, data: bytes) -> None:
        """Have all replicas of the store hear this at once."""
        try:
            self._outgoing.mark(data)
        except StoreError as failure:
            log.debug("Replicas can't be told now: %s", failure)
            return
        self.tell()

    # -- what is known of all of them

    def records(self) -> list[ReplicaRecord]:
        """Return those of all processes, the first that came first; our own as they are now. Raises StoreError."""
        if not self._outgoing.is_on and not self._replicas:
            return []
        now_ms = self._clock_ms()
        names = {replica.name for replica in self._replicas.values()}
        reported = self._outgoing.ask(lambda txn: list(replica_stream.replicas(txn)))
        others = [record for name, record in reported if name not in names and record.until_ms > now_ms]
        own, most = self._own(), self._most_bytes
        return [replica.record(now_ms, most, own) for replica in self._replicas.values()] + others

    def shown(self) -> Iterator[Shown]:
        """Yield the replicas as INFO and ROLE show them. Raises StoreError."""
        now_ms = self._clock_ms()
        for record in self.records():
            lag_s = max(now_ms - record.seen_ms, 0) // 1000 if record.seen_ms else 0
            yield Shown(record.address, record.port, STATES[record.state], record.acknowledged, lag_s)

    def stream(self) -> Stream | None:
        """Raises StoreError."""
        return self._outgoing.ask(replica_stream.get) if self._outgoing.is_on or self._replicas else None

    def acknowledged_by(self, offset: int) -> int:
        """Return how many have executed everything up to here. Raises StoreError."""
        return sum(record.state == ONLINE and record.acknowledged >= offset for record in self.records())

    def good_count(self) -> int:
        """Return how many have been heard from lately. Raises StoreError."""
        most_lag: int = self._settings["min-replicas-max-lag"]
        return sum(one.state == STATES[ONLINE] and one.lag_s <= most_lag for one in self.shown())

    @property
    def are_too_few(self) -> bool:
        """Whether writes are refused, because too few replicas have been heard lately."""
        wanted: int = self._settings["min-replicas-to-write"]
        if not wanted or not self._settings["min-replicas-max-lag"]:
            return False
        try:
            return self.good_count() < wanted
        except StoreError as failure:
            log.debug("Can't look at replicas: %s", failure)
            return True


def _nobody() -> None:
    """Nobody waits."""
