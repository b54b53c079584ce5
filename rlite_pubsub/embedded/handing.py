"""Handing a program that has opened the store itself the messages of its durable subscriber's mailbox, one by one.

There is no kernel between that could acknowledge anything, so a message has *arrived* when the program comes back: when
the `get_message` (or the step of `listen`) that returned it is followed by another, or by its closing. So

 - a program that is killed while it handles a message gets that one again, and so does one that is left because of an
   exception: closing while an exception is on its way, as the end of a `with` does, is no coming back;
 - what it was not handed yet stays, wherever in a letter that is: it is never read ahead and lost.

    mailbox (disk)   |   said, in the session's inbox   |   in hand   |   arrived   |   removed from the mailbox

What has arrived is removed as the program comes back for more, but not at each message of many: so what is kept longer
than it need be, and comes again if the program is killed, is at most what was read in SETTLE_SECONDS.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from rlite_pubsub.durable.attaching import Durables
from rlite_pubsub.durable.feed import Feed
from rlite_pubsub.embedded.errors import TakenOver
from rlite_pubsub.pubsub.route import Audience, Form
from rlite_pubsub.pubsub.session import DurableFeed, Session
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.mail import forms, mailboxes
from rlite_pubsub.storage.mail.mailboxes import Letter
from rlite_pubsub.storage.names.durables import Durable

if TYPE_CHECKING:
    from rlite_pubsub.embedded.waking import Timers
    from rlite_pubsub.pubsub.outbox import TakenOutbox


CHUNK_BYTES = 64 * 1024
"""Each message of it is an object of its own while it waits to be handed over."""


class _Begun(NamedTuple):
    """A letter that has been said."""

    note: bytes
    ends: list[int]  # of its messages, in the feed's bytes
    noted: bytes  # its note in the mailbox, as it is now


class Handed(Protocol):
    """A session that hands out what it was said."""

    feed: DurableFeed | None
    outbox: TakenOutbox

    def end_by(self, why: Exception) -> None:
        """Note an end that its program must hear of."""


class HandedFeed(Feed):
    """A Feed of a session in this process."""

    chunk_limit_bytes = CHUNK_BYTES
    kept_seconds = 0.0

    __slots__ = ("_begun", "_in_hand_bytes", "_said", "_unread_bytes", "is_behind", "reader", "settle_at")

    def __init__(self, durable: Durable, session: Session) -> None:
        super().__init__(durable, session)
        self.is_behind = False  # more may wait than was said
        self.settle_at = 0.0  # by the monotonic clock: not before
        self.reader = 0  # the thread that has something in hand
        self._said: deque[bytes] = deque()  # and not handed over; each is a message in all of its forms
        self._unread_bytes = 0  # of these
        self._in_hand_bytes = 0
        self._begun: dict[int, _Begun] = {}  # by sequence, oldest first

    # -- the program

    @property
    def unread_bytes(self) -> int:
        return self._unread_bytes

    def hand(self, part: bytes) -> None:
        """Note that this part of what the session was sent is handed to the program; it may not be from the mailbox."""
        if self._said and part is self._said[0]:
            self._said.popleft()
            self._unread_bytes -= len(part)
            self._in_hand_bytes += len(part)
            self.reader = threading.get_ident()

    def come_back(self) -> bool:
        """Note that the message in hand has arrived. Returns False if there was none."""
        if not self._in_hand_bytes:
            return False
        self._in_hand_bytes = 0
        return True

    # -- the mailbox

    def pump(self, data: Environment) -> bool:
        self.is_behind = True
        if self.is_open and self.session.takes_more:
            self.is_behind = super().pump(data)
        return False  # what is left is said when the program has taken this

    def settle(self, data: Environment, now: float) -> bool:
        is_more = super().settle(data, now)
        front = self._sent[0].sequence if self._sent else self.position + 1
        while self._begun and next(iter(self._begun)) < front:
            del self._begun[next(iter(self._begun))]
        self._leave_rest(data, front)
        return is_more

    def depart(self, data: Environment, now: float) -> bool:
        if not self.ended_because and not self.session.was_cut:
            self.come_back()
        while self.settle(data, inf):
            pass
        return False

    def withdraw(self) -> None:
        """Leave what was not handed over in the mailbox."""
        session = cast("Handed", self.session)
        session.outbox.withdraw(set(map(id, self._said)))
        if self.ended_because:
            session.end_by(TakenOver(self.ended_because))

    @property
    def _is_doubtful(self) -> bool:
        return False  # it was handed over, and the program has come back

    def _leave_rest(self, data: Environment, sequence: int) -> None:
        """The oldest letter may be read in part."""
        begun = self._begun.get(sequence)
        if begun is None:
            return
        read = bisect_right(begun.ends, self._arrived_bytes())
        rest = forms.after(begun.note, read)
        if rest == begun.noted:
            return

        def work(txn: Txn) -> None:
            mailboxes.change_note(txn, self.mailbox, sequence, begun.noted, rest)

        data.write(work, freeing=True)
        self._begun[sequence] = begun._replace(noted=rest)

    def _arrived_bytes(self) -> int:
        return self._sent_bytes - self._unread_bytes - self._in_hand_bytes

    def _hand_over(self, parts: list[bytes]) -> None:
        for part in parts:
            self._said.append(part)
            self._unread_bytes += len(part)
            self.session.send(part)

    def _encode(self, form: Form, tails: list[bytes]) -> list[bytes]:
        group = Audience(form)
        return [group.encode([tail]) for tail in tails]

    def _note_said(self, letter: Letter, said: list[bytes]) -> None:
        ends = []
        for part in said:
            self._sent_bytes += len(part)
            ends.append(self._sent_bytes)
        self._begun[letter.sequence] = _Begun(letter.note, ends, letter.note)


log = logging.getLogger("rlite_pubsub")

SETTLE_SECONDS = 0.01


class Handing:
    """Updates mailboxes as the program comes back. All methods are called under the host's lock."""

    def __init__(
        self,
        data: Environment,
        durables: Durables,
        timers: Timers,
        look: Callable[[], None],
        turn: Callable[[Callable[[], None]], None],
        clock: Callable[[], float],
    ) -> None:
        """`look` takes in what others have published, `turn` does some work as a turn."""
        self._data = data
        self.durables = durables
        self._timers = timers
        self._look = look
        self._turn = turn
        self._clock = clock
        self._settles_later = False

    def tend(self, session: Handed, feed: HandedFeed) -> None:
        """The program has come back for more. It may find that another has taken over."""
        is_settling = False
        if feed.come_back():
            now = time.monotonic()
            is_settling = now >= feed.settle_at
            if is_settling:
                feed.settle_at = now + SETTLE_SECONDS
                self._look()
            elif not self._settles_later:
                self._settles_later = True
                self._timers.add(SETTLE_SECONDS, self._settle_all)
        if session.feed is feed and (is_settling or (feed.is_behind and not session.outbox.inbox)):
            self._turn(lambda: self._go_on(feed, is_settling))

    def _go_on(self, feed: HandedFeed, is_settling: bool) -> None:
        if is_settling:
            self._settle(feed)
        self.durables.drained(feed.session)

    def _settle_all(self) -> None:
        self._settles_later = False
        for feed in self.durables.feeds.values():
            self._settle(feed)

    def _settle(self, feed: Feed) -> None:
        try:
            while feed.settle(self._data, self._clock()):
                pass
        except StoreError as failure:  # the cron tries again
            log.warning("Can't remove what has arrived from the mailbox of a durable subscriber: %s", failure)


def handed_feed(durable: Durable, session: Session) -> Feed:
    """Return the feed of a session in this process."""
    return HandedFeed(durable, session)
