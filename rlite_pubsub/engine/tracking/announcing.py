"""Announcing the keys that this process changes to other processes whose clients track keys.

Laws kept here:
 1. change: what was changed is written in the transaction that changes it -> COMMIT -> ring those that track.
11. While nobody elsewhere tracks, a commit costs a look at shared memory.

A process announces that it begins to track before it answers its client. A turn under way at that moment does not know
which keys it has changed, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rlite_pubsub.storage.commons import changed_keys
from rlite_pubsub.storage.commons.changed_keys import ALL_REMOVED, THESE, UNKNOWN
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.memory import EPHEMERAL
from rlite_pubsub.storage.names import receivers

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.pubsub.neighbours import Neighbours
    from rlite_pubsub.pubsub.post import Post
    from rlite_pubsub.storage.environment import Txn

log = logging.getLogger("rlite_pubsub")


class Announcing:
    """Tells other processes which keys this one has changed."""

    def __init__(self, neighbours: Neighbours, post: Post, heed: Callable[[], None]) -> None:
        """`heed` is called when others begin or cease to track keys."""
        self.hint = neighbours.hint  # the first number changes when trackers may have changed
        self.seen = -1
        self.trackers: tuple[int, ...] = ()  # other processes that track keys
        self.changed: dict[bytes, None] = {}  # by this turn
        self._were_all_removed = False
        self.is_owing = False  # something must be written, or trackers must be rung
        self._knows_all = True  # `changed` has all changes of this turn, from its beginning
        self._neighbours = neighbours
        self._post = post
        self._heed = heed

    def refresh(self, *, in_turn: bool = False) -> None:
        """See who tracks keys; `in_turn`: some keys may have been changed by now. Raises StoreError."""
        seen = self.hint[0]
        if seen == self.seen:
            return
        own = self._neighbours.own
        found = self._neighbours.live.read(lambda txn: receivers.subscribers(txn, receivers.TRACKERS, b""))
        trackers = tuple([subscriber for subscriber, _ in found if subscriber != own])
        self.seen = seen
        if trackers and not self.trackers and in_turn:
            self._knows_all = False
        self.trackers = trackers
        self._heed()

    def note(self, name: bytes) -> None:
        """Note that a key is changed. Call it while there are trackers."""
        if not name.endswith(EPHEMERAL):
            self.changed[name] = None
            self.is_owing = True

    def flushed(self) -> None:
        """Note that all keys are removed."""
        if self.trackers:
            self.changed.clear()
            self._were_all_removed = self.is_owing = True

    def before_commit(self, keyspace: Keyspace) -> None:
        """Write the changed keys, in the transaction that changes them. Raises StoreError."""
        try:
            self.refresh(in_turn=True)
        except StoreError as failure:
            log.warning("Can't see which processes track keys: %s", failure)
        if not self.trackers:
            self.forget()
            return
        what = ALL_REMOVED if self._were_all_removed else THESE if self._knows_all else UNKNOWN
        if self.changed or what != THESE:
            own = self._neighbours.own or 0
            changed_keys.add(keyspace.writing(), own, what, self.changed)
            self.is_owing = True

    def after_commit(self) -> None:
        """Ring the processes that should read them."""
        failpoint("changed-keys-committed")
        self._ring_all()
        self.forget()

    def _ring_all(self) -> None:
        for subscriber in self.trackers:
            self._post.ring(subscriber)

    # -- of a transaction that a thread makes beside the loop

    def write_beside(self, txn: Txn, names: Iterable[bytes]) -> None:
        """Like `before_commit`, in that thread: it cannot know who will be tracking when it commits, so it always
        writes."""
        changed_keys.add(txn, self._neighbours.own or 0, THESE, dict.fromkeys(names))

    def ring(self) -> None:
        """Like `after_commit`, in the loop."""
        try:
            self.refresh()
        except StoreError as failure:
            log.warning("Can't see which processes track keys: %s", failure)
        self._ring_all()

    def forget(self) -> None:
        """Forget the turn's changes: it is over."""
        self.changed.clear()
        self._were_all_removed = self.is_owing = False
        self._knows_all = True
