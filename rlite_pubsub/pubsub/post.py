"""Messages to and from other processes: their mailboxes, their bells, and ours.

Law 1. route -> one write transaction: append -> COMMIT -> ring. A turn's messages are one transaction, and one ring for
each subscriber, however many they are.
Messages to durable subscribers are committed before (DurableMail), in a transaction of their own.
Law 3. CLEAR the bell -> take the mailbox until it is empty, a slice in each turn: as long as there is more, the reader
rings its own bell.
To put a reader to sleep and to wake it costs more than a message does. So who is sent message after message stays
awake: it keeps what it has taken in its mailbox, rings its own bell, and looks again. As a mailbox that is not empty is
not rung for, publishers ring only for who sleeps, and the reader commits once for many messages. It lies down by
removing what it kept, in a transaction that also sees whether there is more. No wake-up is lost between the two, for
LMDB admits one writer at a time: a commit before that transaction is seen by it, and a commit after it
finds the mailbox empty, and rings. Who dies or stops while it is awake is rung every RING_AGAIN_NS, as any other that
does not empty its mailbox, and so found out (law 4).
Law 4. A bell that nobody answers is a hint: its owner is probed, and reaped if it is proven dead, after the publish.
Laws 7 and 8. The publisher keeps a mailbox within its limits, and the owner learns what was lost: full_mailboxes.py.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, KeysView
from contextlib import contextmanager
from time import monotonic_ns
from typing import Final, NamedTuple, Protocol, TypeVar

from rlite_pubsub.protocol.batch import split_run
from rlite_pubsub.pubsub.full_mailboxes import Arrears, FullMailboxes
from rlite_pubsub.pubsub.neighbours import DurableNeighbours, Neighbours
from rlite_pubsub.pubsub.reaping import reap
from rlite_pubsub.pubsub.route import Address, Route
from rlite_pubsub.storage.agenda import FEEDS, SUSPECTS, Agenda
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import NO_ROOM, StoreError, StoreHeld
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.mail import letters, mailboxes, overflows
from rlite_pubsub.storage.mail.allowances import Allowance
from rlite_pubsub.storage.mail.letters import MessageRun
from rlite_pubsub.storage.mail.mailboxes import Letter, Mailbox
from rlite_pubsub.storage.mail.overflows import Relief
from rlite_pubsub.storage.names import attachments
from rlite_pubsub.storage.names.subscribers import get
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store
from rlite_pubsub.wakeups.doorbell import Ring, Ringer

log: Final = logging.getLogger("rlite_pubsub")

T = TypeVar("T")

RING_AGAIN_NS: Final = 2_000_000
"""A subscriber that has not emptied its mailbox is notified again after this time: the process that should have done it
may have died."""
TAKEN_BYTES: Final = 4 << 20
"""Taken out of our mailbox in one transaction, and handed on in one turn."""
SLICES: Final = 8
"""In how many at least a full mailbox is handed on."""
AWAKE_NS: Final = 100_000
"""After two messages within this time, look for the next one for as long, because a wake-up costs 40 to 80 us."""
KEPT_BYTES: Final = 256 << 10
KEPT_LETTERS: Final = 256
"""So much of what is taken is kept at most: the mailbox's limits count it, and removing it holds the publishers up."""
LOOK_AGAIN_NS: Final = 1_000_000
"""Whether anybody has died is looked at no more often: a look takes a microsecond."""
FORGET_PAGES_BYTES: Final = 16 << 20
"""What is read through LMDB's map stays in this process's memory; after this many bytes it is let go."""


ROOM_STEPS: Final = 200
"""So often room is made for one commit: each frees some pages."""


class Delivered(NamedTuple):
    """What one transaction has put into mailboxes."""

    to: Collection[int]
    were_empty: set[int]
    reliefs: list[Relief]


class DurableMail(Protocol):
    """The messages that this process sends to durable subscribers."""

    @property
    def routes(self) -> DurableNeighbours:
        """The durable subscribers that receive them."""

    def check_room(self, at_ms: int) -> None:
        """Make room on a full disk before anybody is sent anything. Raises StoreError."""

    def deliver(self, outgoing: list[tuple[Route, list[bytes]]], at_ms: int) -> set[int]:
        """Commit all that is for durable subscribers; to whom. Raises StoreError, and then nothing of it is there."""


class Post:
    """What this process must send, and what has come for it."""

    def __init__(
        self,
        store: Store,
        neighbours: Neighbours,
        durable: DurableMail,
        clock: Callable[[], float] = time.time,
        agenda: Agenda | None = None,
    ) -> None:
        self.agenda = agenda = agenda or Agenda()
        agenda.at(SUSPECTS, self.reap_suspects)
        self._store = store
        self._clock = clock
        self._neighbours = neighbours
        self._ringer = Ringer(store.subscribers_folder)
        self._looked_at: Address | None = None  # whose bells are open
        self._looked_ns = 0
        self._outgoing: list[tuple[Route, list[bytes]]] = []  # to processes
        self._lasting: list[tuple[Route, list[bytes]]] = []  # to durable subscribers
        self._durable = durable
        self._watched: KeysView[int] | None = None  # durable subscribers that are attached here
        self._arrived: set[int] = set()  # those of them that were sent something
        self.suspects: set[int] = set()  # they did not answer the bell
        self.full = FullMailboxes(store)
        self.arrears = Arrears(store)  # of our own mailbox
        self._slice_bytes = TAKEN_BYTES
        self._rung_ns: dict[int, int] = {}  # when each subscriber was rung last
        self._received_at = -1  # the store's last commit, when our mailbox was found empty
        self._read_bytes = 0  # since the pages were let go
        self._taken = 0  # up to this sequence our mailbox is taken; what is kept of them is there until `_remove`
        self._kept_letters = self._kept_bytes = 0
        self._came_ns = 0  # when the last messages came
        self._came_letters = 0
        self._awake_until_ns = 0  # 0: the next look that finds nothing sets it
        self.rung = 0  # bells rung
        self.sent = 0  # messages put into other processes' mailboxes
        self.received = 0  # messages taken out of ours
        neighbours.call_with_processes(self._forget_others)

    def _forget_others(self, processes: Collection[int]) -> None:
        """What is remembered of a process goes with it."""
        self._ringer.keep_only(processes)
        self._rung_ns = {one: at_ns for one, at_ns in self._rung_ns.items() if one in processes}

    def allow(self, allowance: Allowance) -> None:
        """Set how much may wait in our mailbox, and for each session: messages are not handed on in one piece that is
        more than a session may leave."""
        self._slice_bytes = min(TAKEN_BYTES, allowance.least_bytes // SLICES)

    def watch(self, durables: KeysView[int]) -> None:
        """Note which of these durable subscribers, attached here, are sent something."""
        self._watched = durables

    def take_arrived(self) -> set[int]:
        """Return those that were sent something since the last call."""
        arrived, self._arrived = self._arrived, set()
        return arrived

    @property
    def own(self) -> int | None:
        """Our subscriber id; None before we are one."""
        return self._neighbours.own

    @property
    def is_due(self) -> bool:
        """True if there is something to send."""
        return bool(self._outgoing or self._lasting)

    def check_writer(self, address: Address) -> None:
        """Check that messages for this address can be written, before any local session receives them. Raises
        StoreHeld."""
        if address.subscribers:
            self._store.live.check_write()
        if address.durable:
            self._store.data.check_write()
            self._durable.check_room(int(self._clock() * 1000))

    def add(self, route: Route, tails: list[bytes]) -> None:
        """Send these messages along a route that leads to other processes, at the turn's end."""
        address = route.address
        assert address is not None
        if address.subscribers:
            _put(self._outgoing, route, tails)
        if address.durable:
            _put(self._lasting, route, tails)

    def drop(self) -> None:
        """Send nothing of what is due."""
        self._outgoing, self._lasting = [], []

    def take_back(self, address: Address) -> bool:
        """`send` has failed: send nothing of what is due. Whether nobody has got what was to go there."""
        has_none = not address.durable or bool(self._lasting)
        self.drop()
        return has_none

    @contextmanager
    def kept_writer(self, address: Address) -> Iterator[None]:
        """No other process writes into our mailboxes' environment until the end. Raises StoreHeld."""
        writer = self._store.live.writer
        if writer is None or not address.subscribers:
            yield
            return
        with writer.kept():
            yield

    def send(self) -> None:
        """Commit, then ring. Raises StoreError, and then nothing of it is sent to processes, and it is still due.
        Durable subscribers may have it: theirs is another environment, which is committed first.
        """
        at_ms = int(self._clock() * 1000)
        to: set[int] = set()
        were_empty: set[int] = set()
        outgoing = self._outgoing
        try:
            if self._lasting:
                arrived = self._durable.deliver(self._lasting, at_ms)
                self._lasting = []
                if self._watched:
                    self._arrived |= arrived & self._watched
                    self.agenda.due |= FEEDS
                to = self._store.live.read(lambda txn: _hosts(txn, arrived))
            if outgoing:
                was_rung = to
                adding_bytes = sum([len(tail) for _, tails in outgoing for tail in tails])
                delivered = self._written(lambda txn: self._deliver(txn, outgoing, at_ms), at_ms, adding_bytes)
                self._outgoing = []
                to = was_rung.union(delivered.to)
                were_empty = delivered.were_empty | was_rung
                if delivered.reliefs:
                    self._note(delivered.reliefs)
            failpoint("publish-committed")
        finally:  # whatever is committed must be looked for
            self._ring_all(to, were_empty)
        failpoint("publish-rung")
        self.sent += sum(len(tails) for _, tails in outgoing)

    def send_one(self, address: Address, payload: bytes) -> None:
        """Like `send`, for one message to other processes alone, with nothing else under way. Raises StoreError."""
        kind, name, subscribers, _ = address
        message = letters.pack_one(kind.index, name, payload)
        at_ms = int(self._clock() * 1000)

        def put(txn: Txn) -> tuple[set[int], list[Relief]] | None:
            """Put the messages into mailboxes; return the owners of those that were empty. Returns None, having done
            nothing, if routes have changed."""
            if routes_version(txn) != self._neighbours.version:
                return None
            were_empty: set[int] = set()
            heavy: set[int] = set()
            to = [(Mailbox(one), b"") for one in subscribers]
            mailboxes.deliver(txn, message, to, at_ms, 1, were_empty, self._neighbours.least_bytes, heavy)
            return were_empty, [overflows.keep(txn, one, at_ms) for one in heavy] if heavy else []

        delivered = self._written(put, at_ms, len(payload))
        if delivered is None:
            self.add(Route([], address), [b"%d\r\n%b" % (len(payload), payload)])
            self.send()
            return
        were_empty, reliefs = delivered
        if reliefs:
            self._note(reliefs)
        failpoint("publish-committed")
        self._ring_all(subscribers, were_empty)
        failpoint("publish-rung")
        self.sent += 1

    def _written(self, work: Callable[[Txn], T], at_ms: int, adding_bytes: int) -> T:
        """Write like `write`. If there is no room, the mailbox that holds the most gives way. Raises StoreError."""
        for _ in range(ROOM_STEPS):
            try:
                return self._store.live.write(work, adding_bytes=adding_bytes)
            except NO_ROOM as lack:
                if not self.full.make_room(lack, at_ms, adding_bytes):
                    raise
                self.agenda.due |= SUSPECTS
        return self._store.live.write(work, adding_bytes=adding_bytes)

    def _note(self, reliefs: list[Relief]) -> None:
        """Mailboxes were found at their limits."""
        self.full.note(reliefs)
        if self.full.is_emptying:
            self.agenda.due |= SUSPECTS

    def _ring_all(self, to: Collection[int], were_empty: set[int]) -> None:
        """A subscriber that has not emptied its mailbox since the bell was rung will find what was added."""
        now_ns = monotonic_ns()
        rung_ns = self._rung_ns
        for subscriber in to:
            is_due = subscriber in were_empty or now_ns - rung_ns.get(subscriber, 0) > RING_AGAIN_NS
            if is_due and subscriber != self._neighbours.own:
                rung_ns[subscriber] = now_ns
                self.ring(subscriber)

    def ring(self, subscriber: int) -> None:
        """Ring its bell, after the commit."""
        self.rung += 1
        if self._ringer.ring(subscriber) is Ring.GONE:
            self.suspect(subscriber)

    def reap_unheard(self, address: Address) -> bool:
        """Return whether somebody there was found dead, and removed; nothing is written now. Law 4: a bell that nobody
        hears is the hint, the lock the proof. Who publishes all the time looks now and then."""
        now_ns = monotonic_ns()
        if now_ns - self._looked_ns < LOOK_AGAIN_NS:
            return False
        self._looked_ns = now_ns
        unheard = self._ringer.unheard()
        if address is not self._looked_at:
            self._looked_at = address
            unheard += self._ringer.open(address.subscribers)
        if not unheard:
            return False
        self.suspects.update(unheard)
        self.reap_suspects()
        return True

    def suspect(self, subscriber: int) -> None:
        """Look, when the turn ends, whether it is dead."""
        self.suspects.add(subscriber)
        self.agenda.due |= SUSPECTS

    def reap_suspects(self) -> None:
        """Look at those who did not answer the bell, one transaction for each."""
        suspects, self.suspects = self.suspects, set()
        for subscriber in suspects:
            try:
                if reap(self._store, subscriber):
                    log.info("Cleaned up after subscriber %016x, which is dead.", subscriber)
            except StoreError as failure:
                log.warning("Can't clean up after subscriber %016x: %s", subscriber, failure)
        if self.full.is_emptying:
            try:
                self.full.empty_some()
            except StoreError as failure:
                log.warning("Can't empty the mailbox of a subscriber that is cut off: %s", failure)
            if self.full.is_emptying:
                self.agenda.later |= SUSPECTS

    @property
    def is_awake(self) -> bool:
        """True if our own bell was rung because more messages are expected soon."""
        return self._kept_letters > 0

    @property
    def may_have_come(self) -> bool:
        """False if our mailbox is surely as empty as it was when `receive` had taken everything. Raises StoreError."""
        return self._store.live.last_commit() != self._received_at

    def receive(self, own: int) -> tuple[list[MessageRun], bool]:
        """Take out the oldest of what has come, and say whether there is more: one slice, so that neither memory nor
        the other sessions' patience must be as large as the mailbox. The bell must have been cleared before, and is
        rung as long as it is worth while to look for more. Raises StoreError.

        The slice is read without the writer's lock, which the publishers need.
        """
        live = self._store.live
        if self._kept_letters and not self.may_have_come:
            return [], self._found_nothing(own)
        mailbox = Mailbox(own)
        if self._read_bytes >= FORGET_PAGES_BYTES:
            self._read_bytes = 0
            live.forget_pages()
        taken, has_more, last_commit, is_full = live.read(
            lambda txn: _take(txn, mailbox, self._taken, self._slice_bytes)
        )
        if is_full:  # what was lost is older than what is there
            self.arrears.learn(own)
            self._received_at = -1
            return [], True
        if not taken:
            self._received_at = last_commit
            return [], self._found_nothing(own)
        taken_bytes = sum([len(letter.message) for letter in taken])
        runs = [letters.unpack(letter.message) for letter in taken]
        self.arrears.keep(taken, runs)
        if self._stays_awake(len(taken), taken_bytes):
            self._taken = taken[-1].sequence
            self._received_at = -1 if has_more else last_commit
            self._ringer.ring(own)
        else:
            self._taken = taken[-1].sequence
            self._kept_letters += len(taken)
            self._kept_bytes += taken_bytes
            has_more = self._remove(mailbox, self._taken)
        self._read_bytes += taken_bytes
        self.received += sum([run.messages for run in runs])
        return runs, has_more

    def _stays_awake(self, count: int, size_bytes: int) -> bool:
        """Return whether the messages that have just come are kept, because more are expected soon."""
        now_ns = monotonic_ns()
        is_stream = now_ns - self._came_ns < AWAKE_NS * self._came_letters
        self._came_ns, self._came_letters = now_ns, count
        self._awake_until_ns = 0
        if not is_stream or self._kept_bytes + size_bytes > KEPT_BYTES or self._kept_letters + count > KEPT_LETTERS:
            return False
        self._kept_letters += count
        self._kept_bytes += size_bytes
        return True

    def _found_nothing(self, own: int) -> bool:
        """Look again, or lie down. Whether there is more."""
        if not self._kept_letters:
            return False
        now_ns = monotonic_ns()
        if not self._awake_until_ns:
            self._awake_until_ns = now_ns + AWAKE_NS
        elif now_ns >= self._awake_until_ns:
            return self._remove(Mailbox(own), self._taken)
        self._ringer.ring(own)
        return False

    def _remove(self, mailbox: Mailbox, up_to_sequence: int) -> bool:
        """Remove what has been taken, and say whether there is more."""

        def remove(txn: Txn) -> tuple[bool, int, int]:
            mailboxes.remove(txn, mailbox, up_to_sequence)
            dropped_to = overflows.dropped_to(txn, mailbox.subscriber)
            return mailboxes.first_note(txn, mailbox) is not None, txn.id(), dropped_to

        try:
            has_more, last_commit, dropped_to = self._store.live.write(remove, freeing=True)
        except StoreError as failure:  # it is handed on all the same, and removed when that can be
            if not isinstance(failure, StoreHeld):
                log.warning("Can't empty the mailbox of what was taken out of it: %s", failure)
            return False
        self._taken = self._kept_letters = self._kept_bytes = 0
        self.arrears.removed(dropped_to)
        if not has_more:
            self._received_at = last_commit
        return has_more

    def close(self) -> None:
        """Let go of the bells."""
        self._ringer.close()

    def _deliver(self, txn: Txn, outgoing: list[tuple[Route, list[bytes]]], at_ms: int) -> Delivered:
        """Put all into the mailboxes. Where routes have changed, they are looked up again in here."""
        stale = routes_version(txn) != self._neighbours.version
        least_bytes = self._neighbours.least_bytes
        everybody: set[int] = set()
        were_empty: set[int] = set()
        heavy: set[int] = set()
        for route, tails in outgoing:
            address = route.address
            assert address is not None
            to: Collection[int] = address.subscribers
            if stale:
                found = self._neighbours.receivers_in(txn, address.kind, address.name)
                to = [one for one in found if get(txn, one) and not overflows.is_cut(txn, one)]
            if to:
                message = letters.pack(address.kind.index, address.name, tails)
                letters_to = [(Mailbox(subscriber), b"") for subscriber in to]
                mailboxes.deliver(txn, message, letters_to, at_ms, len(tails), were_empty, least_bytes, heavy)
                everybody.update(to)
        most = max(overflows.SLICE, 2 * len(outgoing))  # more go than come
        return Delivered(everybody, were_empty, [overflows.keep(txn, one, at_ms, most) for one in heavy])


def _take(
    txn: Txn, mailbox: Mailbox, after_sequence: int, limit_bytes: int
) -> tuple[list[Letter], bool, int, bool]:
    """The oldest letters after this one, whether there are more, and the commit by which this is so; and whether there
    is something to learn first of what was lost before them."""
    if overflows.is_due(txn, mailbox.subscriber):
        return [], True, txn.id(), True
    taken = mailboxes.take(txn, mailbox, limit_bytes, after_sequence)
    has_more = bool(taken) and mailboxes.first_note(txn, mailbox, taken[-1].sequence) is not None
    return taken, has_more, txn.id(), False


def _put(outgoing: list[tuple[Route, list[bytes]]], route: Route, tails: list[bytes]) -> None:
    if outgoing and outgoing[-1][0] is route:
        outgoing[-1][1].extend(tails)
    else:
        outgoing.append((route, list(tails)))


def _hosts(txn: Txn, durables: set[int]) -> set[int]:
    """Return the processes to which these durable subscribers are attached."""
    found = [attachments.get(txn, durable) for durable in durables]
    return {attachment.subscriber for attachment in found if attachment is not None}


def tails_of(run: MessageRun) -> list[bytes]:
    """Return the messages of a run, each `<length>\\r\\n<payload>`."""
    split = split_run(run.body, b"$")
    if split is not None and split[1] == len(run.body):
        return split[0]
    return letters.tails(run)  # sizes that change under way, or payloads that hold what looks like a header
