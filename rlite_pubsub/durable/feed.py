"""The messages that an attached session is given from its durable subscriber's mailbox, and how many of them have
arrived.

The mailbox is the session's backlog: it is read in chunks, as the socket takes them. Nothing leaves it before the
peer's kernel has acknowledged its bytes: a letter has arrived once no more bytes are unacknowledged than were said
after it. (Other replies in between are not counted, which can only delay the answer.)

A program that is killed takes with it what it has not handled. If there was something that it had not even read, its
kernel resets the connection instead of closing it; so what has arrived is kept for a second more, and is not removed if
a reset comes.

How a session ends says what has been read of that:
 - Its connection was reset: nobody knows. All of it stays, and comes again.
 - The kernels tell what the peer's program has read (unix sockets, and both ends on this machine): that is removed, and
   the rest stays, however it ended.
 - The peer, elsewhere, has closed it, or has said QUIT. That is believed only when it stays so: a library that calls
   shutdown() before close() sends its end first and the reset behind it. So that is waited for (`depart`, `is_known`).
 - This server has closed it, and nobody knows. All of it stays.

Where no kernel is between, for a program that has opened the store itself, embedded/handing.py says what has arrived.
It can tell by the message, so that a letter may be left in the mailbox with the rest of its messages.
"""

from __future__ import annotations

from collections import deque
from math import inf
from typing import NamedTuple

from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Push
from rlite_pubsub.pubsub.kinds import KINDS, PATTERNS
from rlite_pubsub.pubsub.post import tails_of
from rlite_pubsub.pubsub.route import Audience, Form, frame
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.mail import forms, letters, losses, mailboxes, overflows
from rlite_pubsub.storage.mail.losses import LostMessages
from rlite_pubsub.storage.mail.mailboxes import Letter, Mailbox
from rlite_pubsub.storage.names.durables import Durable

CHUNK_BYTES = 256 * 1024
REMOVED_AT_ONCE = 2000
GAPS_AT_ONCE = 1000
FORGET_PAGES_BYTES = 8 << 20
"""What is read through LMDB's map stays in this process's memory; after this many bytes it is let go."""
KEPT_SECONDS = 1.0
"""What has arrived stays in the mailbox for so long, for its reader may be killed."""


class _Sent(NamedTuple):
    end: int  # of the feed's bytes
    sequence: int
    gap: tuple[bytes, int] | None  # (channel, messages) of a loss that was told
    letter: tuple[bytes, int] | None = None  # (channel, messages) of a letter, once for each time that it is received


class Feed:
    """The messages of a durable subscriber for one session, from its attachment to its end."""

    chunk_limit_bytes = CHUNK_BYTES
    kept_seconds = KEPT_SECONDS

    __slots__ = ("_arrived", "_departed_at", "_read_bytes", "_sent", "_sent_bytes", "_told", "chunk_bytes", "durable",
                 "ended_because", "gaps", "is_open", "mailbox", "position", "seen", "session")  # fmt: skip

    def __init__(self, durable: Durable, session: Session) -> None:
        self.durable = durable
        self.session = session
        self.mailbox = Mailbox(durable.id)
        self.is_open = False  # it has subscribed
        self.position = 0  # the last sequence that was said
        self.chunk_bytes = 0  # said by the last `pump`: with its framing, and as often as it is received
        self.gaps = 0  # gap messages said
        self.ended_because = ""  # somebody else than its session has ended it
        self.seen = 0.0  # when the record was told last that the subscriber is here
        self._sent: deque[_Sent] = deque()  # said, and not known to have arrived
        self._sent_bytes = 0
        self._arrived: deque[tuple[float, _Sent]] = deque()  # (when it was noticed, what), and not removed yet
        self._departed_at = 0.0  # when its session ended
        self._told: dict[bytes, int] = {}  # losses, by channel, that are told but still recorded
        self._read_bytes = 0

    def open(self) -> None:
        """Begin to send what waits: the session has subscribed."""
        self.is_open = True

    def renew(self, durable: Durable) -> None:
        """Replace the subscriber's record."""
        self.durable = durable

    def note_seen(self, now: float) -> None:
        """Notes in the record that the subscriber is attached."""
        self.seen = now

    def end(self, reason: str) -> None:
        """End it from outside its session."""
        self.ended_because = reason

    def pump(self, data: Environment) -> bool:
        """Say the next of what waits. True if more does, and the session may take it now. Raises StoreError."""
        if not self.is_open or not self.session.takes_more:
            return False
        lost, taken, is_more, dropped_to = data.read(self._next)
        if dropped_to:
            data.write(lambda txn: self._take_back_losses(txn, dropped_to), freeing=True)
            lost, taken, is_more, _ = data.read(self._next)
        parts: list[bytes] = []
        for one in lost:
            self._say_gap(one, parts)
        for letter in taken:
            self._say(letter, parts)
        if parts:
            self.chunk_bytes = sum(map(len, parts))
            self._hand_over(parts)
        self._read_bytes += sum(len(letter.message) for letter in taken)
        if self._read_bytes >= FORGET_PAGES_BYTES:
            self._read_bytes = 0
            data.forget_pages()
        return is_more

    def settle(self, data: Environment, now: float) -> bool:
        """Remove what has arrived long enough before. True if there is more to remove at once. Raises StoreError."""
        self._note_arrived(now)
        due: list[_Sent] = []
        for noticed, one in self._arrived:
            if len(due) == REMOVED_AT_ONCE or noticed <= now < noticed + self.kept_seconds:
                break
            due.append(one)
        if not due or self._is_doubtful:
            return False
        data.write(lambda txn: self._remove(txn, due), freeing=True)
        for one in due:
            self._arrived.popleft()
            if one.gap is not None:
                channel, messages = one.gap
                self._told[channel] -= messages
                if not self._told[channel]:
                    del self._told[channel]
        return len(due) == REMOVED_AT_ONCE

    def depart(self, data: Environment, now: float) -> bool:
        """The session has ended: remove what its peer has surely read. True if only time can tell what it has: until
        `is_known` somebody is to ask again. Raises StoreError."""
        session = self.session
        self._note_arrived(now)
        if session.was_cut:  # asked after the arrival, for a cut can look like one
            return False
        if session.said or session.outbox.waiting_bytes:
            self._sent.clear()  # the last of it is never written
        if session.reads_are_known:
            self._remove_arrived(data)
        # gaps are told again: another process may have told them before this is known
        self._arrived = deque([(now, one) for _, one in self._arrived if one.gap is None])
        self._sent = deque([one for one in self._sent if one.gap is None])
        self._departed_at = now
        return session.left_in_peace and self.is_owing

    def is_known(self, data: Environment, now: float) -> bool:
        """Return whether everything is known that ever will be, and what was read is removed. Raises StoreError."""
        self._note_arrived(now)
        if self.session.was_cut:
            return True
        if not self._departed_at <= now < self._departed_at + self.kept_seconds:
            self._sent.clear()
        if self.session.reads_are_known:
            self._remove_arrived(data)
        else:
            self.settle(data, now)
        return not self.is_owing

    def withdraw(self) -> None:
        """Detach the session. What was said to it cannot be taken back, where a socket has it."""

    @property
    def unread_bytes(self) -> int:
        """Said, and not handed over, where that can be told."""
        return 0

    @property
    def is_owing(self) -> bool:
        """True if something has been sent and is still in the mailbox."""
        return bool(self._sent or self._arrived)

    @property
    def is_due_to_settle(self) -> bool:
        """Much has been said since the last removal."""
        return len(self._sent) + len(self._arrived) >= REMOVED_AT_ONCE // 2

    @property
    def _is_doubtful(self) -> bool:
        """True if what was noted as arrived may not have."""
        return self.session.was_cut

    def _note_arrived(self, now: float) -> None:
        if self._sent:
            arrived_bytes = self._arrived_bytes()
            while self._sent and self._sent[0].end <= arrived_bytes:
                self._arrived.append((now, self._sent.popleft()))

    def _remove_arrived(self, data: Environment) -> None:
        while self.settle(data, inf):
            pass

    def _arrived_bytes(self) -> int:
        """Return how many of the bytes sent have arrived."""
        return self._sent_bytes - self.session.unacknowledged_bytes()

    def _hand_over(self, parts: list[bytes]) -> None:
        """Say them."""
        self.session.send(b"".join(parts))

    def _encode(self, form: Form, tails: list[bytes]) -> list[bytes]:
        """Return the messages of a letter as they are said."""
        return [Audience(form).encode(tails)]

    def _next(self, txn: Txn) -> tuple[list[LostMessages], list[Letter], bool, int]:
        lost = losses.of(txn, self.durable.id, GAPS_AT_ONCE + len(self._told))
        taken = mailboxes.take(txn, self.mailbox, self.chunk_limit_bytes, self.position)
        is_more = bool(taken) and mailboxes.first_note(txn, self.mailbox, taken[-1].sequence) is not None
        is_more = is_more or len(lost) > len(self._told) + GAPS_AT_ONCE - 1
        return lost, taken, is_more, overflows.dropped_to(txn, self.durable.id)

    def _take_back_losses(self, txn: Txn, dropped_to: int) -> None:
        """Publishers have dropped letters while this process hung: what had been said of them is not lost."""
        self._take_back(txn, [*[arrived for _, arrived in self._arrived], *self._sent], dropped_to)
        overflows.remove(txn, self.durable.id)

    def _take_back(self, txn: Txn, said: list[_Sent], dropped_to: int) -> None:
        for one in said:
            if one.letter is not None and one.sequence <= dropped_to:
                losses.told(txn, self.durable.id, *one.letter)

    def _say_gap(self, lost: LostMessages, parts: list[bytes]) -> None:
        untold = lost.messages - self._told.get(lost.channel, 0)
        if untold > 0:
            data = encode(Push([b"gap", lost.channel, untold, lost.since_ms]), self.session.protocol)
            parts.append(data)
            self._told[lost.channel] = self._told.get(lost.channel, 0) + untold
            self._sent_bytes += len(data)
            self._sent.append(_Sent(self._sent_bytes, self.position, (lost.channel, untold)))
            self.gaps += 1

    def _say(self, letter: Letter, parts: list[bytes]) -> None:
        """Send a letter in each of its forms that is still held: dropping a name drops what waits under it."""
        run, note = letters.unpack(letter.message), forms.unpack(letter.note)
        kind, names, protocol = KINDS[run.kind], self.session.names, self.session.protocol
        prefixes: list[bytes] = []
        for pattern in note.forms:
            if pattern is None:
                if run.name in names[kind.index]:
                    prefixes.append(frame(protocol, kind.message, run.name))
            elif pattern in names[PATTERNS.index]:
                prefixes.append(frame(protocol, PATTERNS.message, pattern, run.name))
        if prefixes:
            tails = tails_of(run)
            left = note.messages // len(note.forms)  # fewer where it was left in the middle before
            said = self._encode(tuple(prefixes), tails[len(tails) - left :])
            parts += said
            self._note_said(letter, said)
        self.position = letter.sequence
        self._sent.append(_Sent(self._sent_bytes, letter.sequence, None, (run.name, note.messages)))

    def _note_said(self, letter: Letter, said: list[bytes]) -> None:
        self._sent_bytes += sum(map(len, said))

    def _remove(self, txn: Txn, arrived: list[_Sent]) -> None:
        mailboxes.remove(txn, self.mailbox, arrived[-1].sequence)
        for one in arrived:
            if one.gap is not None:
                losses.told(txn, self.durable.id, *one.gap)
        self._take_back(txn, arrived, overflows.dropped_to(txn, self.durable.id))
