"""Mailboxes at their limits: what a publisher does there, and how the owner learns of it.

Law 7. publishers never wait for subscribers: a publisher keeps each mailbox that it fills within what its owner
allows (storage/mail/overflows.py), for the owner may be asleep, stopped, or hang. A store that is full, and a full
disk, are met in the same way, at the mailbox that holds the most.
Law 8. what is lost is said: to its owner when it reads, and here it is counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from functools import partial
from time import perf_counter
from typing import NamedTuple

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.mail import overflows
from rlite_pubsub.storage.mail.letters import MessageRun
from rlite_pubsub.storage.mail.mailboxes import Letter
from rlite_pubsub.storage.mail.overflows import Relief
from rlite_pubsub.storage.names.version import routes_version
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

LARGE_SHARE = 16
"""A mailbox that holds less than this part of the quota, or of the file, is not what fills the store."""
EMPTYING_S = 0.005
"""At the end of a turn, until the mailboxes of those who were cut off are empty."""


class FullMailboxes:
    """What this process has done to others' mailboxes, or its own, when it put something into them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._to_empty: dict[int, None] = {}  # who was cut off, and has letters yet
        self.dropped = 0  # messages
        self.cut_off = 0  # subscribers

    def note(self, reliefs: Iterable[Relief]) -> None:
        """Take note of a commit: count it, log it once, and let other publishers know who is cut off."""
        for relief in reliefs:
            self.dropped += relief.dropped
            if relief.is_cut:
                self.cut_off += 1
                self._to_empty[relief.subscriber] = None
                self._store.routes.announce(self._store.live.read(routes_version), patterns=False)
                log.warning(
                    "Subscriber %016x is cut off: it has not read, and its mailbox is at its limit (%d messages).",
                    relief.subscriber,
                    relief.dropped,
                )
                told = f"Its mailbox was at its limit with {relief.dropped} messages, since it had not read them"
                self._store.incidents.note("cut_off", told, (_name(relief.subscriber),))
            elif relief.is_first:
                log.warning(
                    "Subscriber %016x loses its oldest messages: it has not read, and its mailbox is at its limit.",
                    relief.subscriber,
                )
            if relief.dropped and not relief.is_cut:
                told = "Its mailbox was at its limit, so that the oldest messages were removed unread"
                self._store.incidents.note("messages_dropped", told, (_name(relief.subscriber),), relief.dropped)

    def make_room(self, lack: StoreError, at_ms: int, adding_bytes: int) -> bool:
        """Make room by removing something from the mailbox that holds the most. Returns False if mailboxes do not fill
        the store. Raises StoreError; StoreHeld if others hold what was removed."""
        return self._store.live.make_room(lack, partial(self._drop_some, at_ms), adding_bytes)

    def _drop_some(self, at_ms: int) -> bool:
        live = self._store.live
        least_bytes = max(min(live.quota_bytes, live.used_bytes()) // LARGE_SHARE, overflows.MARGIN_BYTES)

        def work(txn: Txn) -> Relief | None:
            subscriber, size_bytes = overflows.largest(txn)
            return overflows.make_room(txn, subscriber, at_ms) if size_bytes >= least_bytes else None

        relief = live.write(work, freeing=True)
        if relief is None:
            return False
        self.note([relief])
        return True

    @property
    def is_emptying(self) -> bool:
        """True if `empty_some` has something to do."""
        return bool(self._to_empty)

    def empty_some(self) -> None:
        """Go on emptying the mailboxes of those who were cut off, for a while. Raises StoreError."""
        deadline = perf_counter() + EMPTYING_S
        while self._to_empty and perf_counter() < deadline:
            subscriber = next(iter(self._to_empty))
            if not self._store.live.write(partial(overflows.empty, subscriber=subscriber), freeing=True):
                del self._to_empty[subscriber]


def _name(subscriber: int) -> bytes:
    return b"%016x" % subscriber


class NameLoss(NamedTuple):
    """What the owner of a mailbox has lost of one name."""

    kind: int
    name: bytes
    messages: int
    since_ms: int


class Arrears:
    """What the owner of a mailbox must learn about it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: list[tuple[list[Letter], list[MessageRun]]] = []  # handed on, and in the mailbox yet
        self._handed_on: Counter[bytes] = Counter()  # messages of those that were dropped all the same
        self.lost: list[NameLoss] = []  # announced by the one that empties it
        self.is_cut = False  # as well
        self.gaps = 0

    def keep(self, taken: list[Letter], runs: list[MessageRun]) -> None:
        """Note letters that are handed on, and stay in the mailbox until `removed`."""
        self._kept.append((taken, runs))

    def take(self) -> tuple[list[NameLoss], bool]:
        """Return what must be reported, once: losses, and whether the loss is unknown."""
        lost, is_cut = self.lost, self.is_cut
        self.lost, self.is_cut = [], False
        return lost, is_cut

    def removed(self, dropped_to: int) -> None:
        """Note that these letters are gone; up to this sequence others may have been quicker, and count them as
        lost."""
        if dropped_to:
            self._count_handed_on(dropped_to)
        self._kept.clear()

    def learn(self, own: int) -> None:
        """See what was done to the mailbox. Raises StoreError."""
        live = self._store.live
        told = live.write(lambda txn: overflows.learn(txn, own), freeing=True)
        if told.is_cut:
            while not told.is_all:
                told = live.write(lambda txn: overflows.learn(txn, own), freeing=True)
            self._store.routes.announce(live.read(routes_version), patterns=False)
            self._kept.clear()
            self.is_cut = True
            return
        self._count_handed_on(told.overflow.dropped_to)
        for one in told.lost:
            messages = one.messages - self._handed_on.pop(one.channel, 0)
            if messages > 0:
                self.lost.append(NameLoss(one.channel[0], one.channel[1:], messages, one.since_ms))

    def _count_handed_on(self, dropped_to: int) -> None:
        left = []
        for taken, runs in self._kept:
            for letter, run in zip(taken, runs, strict=True):
                if letter.sequence <= dropped_to:
                    self._handed_on[bytes((run.kind,)) + run.name] += run.messages
            if taken[-1].sequence > dropped_to:
                kept = [(letter, run) for letter, run in zip(taken, runs, strict=True) if letter.sequence > dropped_to]
                left.append(([letter for letter, _ in kept], [run for _, run in kept]))
        self._kept = left
