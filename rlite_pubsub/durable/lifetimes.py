"""The lifetime of durable subscribers: made, last seen, expired, forgotten, deleted.

One that has been away for longer than its TTL *expires*: its names and its messages go, and what it has lost is noted.
It learns of it if it comes back before twice that time; then it is forgotten.

Laws kept here:
 4. doubt is not death: none expires that is attached, by the store's word, to a process that may be alive.
 8. what is lost is said.
What is much is removed in slices, each a transaction of its own; the record goes last, so that a death on the way
leaves something to go on from.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from rlite_pubsub.durable.mailbox import DurablePost, lose_oldest
from rlite_pubsub.pubsub.post import Post
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.mail import losses, mailboxes, overflows
from rlite_pubsub.storage.mail.mailboxes import Mailbox
from rlite_pubsub.storage.names import attachments, durables, receivers, version
from rlite_pubsub.storage.names.durables import Durable
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

SLICE = 2000
LOOK_MS = 10_000
"""All are looked at so often at least: another process may have made one that is soon to expire."""


class TooManyDurables(StoreError):
    """There are as many durable subscribers as there may be."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"there are {most} durable subscribers already (durable-subscriber-max-count): delete some with "
            "SUBSCRIBER.DELETE, or raise the limit"
        )


class Wanted(NamedTuple):
    """The limits that an attaching session asks for; None leaves them as they are, or at the default."""

    ttl_s: int | None = None
    max_bytes: int | None = None
    max_messages: int | None = None


class Lifetimes:
    """The lifetimes of a store's durable subscribers, attached here or not."""

    def __init__(self, store: Store, post: Post, mail: DurablePost, clock: Callable[[], float]) -> None:
        self._store = store
        self._post = post
        self._mail = mail
        self._clock = clock
        self._default_ttl_s = 0
        self._default_max_bytes = 0
        self._most = 0
        self._look_at_ms = 0  # whether any is late: none can be before, unless another process has made it
        self._looked_ms = 0
        self.expired = 0  # those that this process found to have been away for too long

    def set_defaults(self, ttl_s: int, max_bytes: int, most: int) -> None:
        """Set the defaults for new ones, and how many there may be. 0: no limit."""
        self._default_ttl_s, self._default_max_bytes, self._most = ttl_s, max_bytes, most

    def announce(self) -> None:
        """Have all processes look again, ours included: before any reply that says so."""
        moved = self._store.live.write(version.bump, freeing=True)
        self._store.routes.announce(moved, patterns=False)

    def find_or_make(self, name: bytes, wanted: Wanted) -> tuple[Durable, bool]:
        """Return the one of this name, seen now; and whether it, or its limits, are news to others. Raises StoreError;
        TooManyDurables."""
        self._end_expiry(name)
        self._mail.routes.refresh()  # kept up with what we make: nobody looks at all of them again
        durable, before, after, is_new = self._store.data.write(lambda txn: self._found_or_made(txn, name, wanted))
        self._mail.routes.saw_own(before, after, durable, int(is_new))
        if durable.ttl_s:
            self._look_at_ms = min(self._look_at_ms, durable.seen_ms + durable.ttl_s * 1000)
        return durable, before != after

    def note_seen(self, durable: Durable) -> None:
        """Note that it is attached now, or was until now. Raises StoreError."""
        now_ms = int(self._clock() * 1000)

        def work(txn: Txn) -> None:
            recorded = durables.get(txn, durable.name)
            if recorded is not None and recorded.id == durable.id:
                durables.put(txn, replace(recorded, seen_ms=now_ms))

        self._store.data.write(work, freeing=True)

    def delete(self, name: bytes) -> Durable | None:
        """Remove it with all that is its own; None if there is none. Raises StoreError."""
        durable = self._store.data.read(lambda txn: durables.get(txn, name))
        if durable is not None:
            while True:
                before, after, is_done = self._store.data.write(lambda txn: _delete_slice(txn, durable), freeing=True)
                if not self._mail.routes.has_patterns:
                    self._mail.routes.saw_own(before, after, durable if is_done else None, -1 if is_done else 0)
                if is_done:
                    break
                failpoint("delete-slice")
            failpoint("durable-deleted")
            self.announce()
        return durable

    def sweep(self, now_ms: int) -> None:
        """Look for those that have been away for too long. Raises StoreError."""
        if self._looked_ms <= now_ms < min(self._look_at_ms, self._looked_ms + LOOK_MS):
            return
        every = self._store.data.read(durables.every)
        ends = [one.seen_ms + one.ttl_s * (2000 if one.is_expired else 1000) for one in every if one.ttl_s]
        late = [one for one in every if one.ttl_s and one.seen_ms + one.ttl_s * 1000 <= now_ms]
        self._looked_ms, self._look_at_ms = now_ms, min(ends, default=now_ms + LOOK_MS)
        if not late:
            return
        attached = self._store.live.read(attachments.every)
        for durable in late:
            where = attached.get(durable.id)
            if where is not None:
                self._post.suspect(where.subscriber)  # the living would have said so
            elif not durable.is_expired:
                self._expire(durable, now_ms)
            elif durable.seen_ms + 2 * durable.ttl_s * 1000 <= now_ms:
                self.delete(durable.name)

    def _expire(self, durable: Durable, now_ms: int) -> None:
        def mark(txn: Txn) -> bool:
            recorded = durables.get(txn, durable.name)
            if recorded is None or recorded != durable:
                return False  # it is back, or another process was quicker
            durables.put(txn, replace(recorded, is_expired=True))
            return True

        if self._store.data.write(mark, freeing=True):
            failpoint("expiry-marked")
            self.expired += 1
            lost = self._empty(durable)
            self.announce()
            self._mail.note_lost(lost)
            log.warning(
                "Durable subscriber %s was away for more than %d seconds: its %d message(s) are dropped.",
                shown(durable.name),
                durable.ttl_s,
                lost,
            )

    def _end_expiry(self, name: bytes) -> None:
        """Finish the expiry of a subscriber that comes back after it."""
        durable = self._store.data.read(lambda txn: durables.get(txn, name))
        if durable is not None and durable.is_expired:
            self._mail.note_lost(self._empty(durable))
            self._store.data.write(lambda txn: _end_expiry(txn, durable))

    def _found_or_made(self, txn: Txn, name: bytes, wanted: Wanted) -> tuple[Durable, int, int, bool]:
        """Return it, the version before and after this, and whether it is new."""
        now_ms = int(self._clock() * 1000)
        seen = version.routes_version(txn)
        before = durables.get(txn, name)
        if before is None and self._most and self._count(txn, seen) >= self._most:
            raise TooManyDurables(self._most)
        base = before or Durable(
            name, secrets.randbits(64), self._default_ttl_s, self._default_max_bytes, 0, now_ms, now_ms
        )
        durable = replace(
            base,
            seen_ms=now_ms,
            ttl_s=base.ttl_s if wanted.ttl_s is None else wanted.ttl_s,
            max_bytes=base.max_bytes if wanted.max_bytes is None else wanted.max_bytes,
            max_messages=base.max_messages if wanted.max_messages is None else wanted.max_messages,
        )
        durables.put(txn, durable)
        is_changed = before is None or _limits(before) != _limits(durable)
        return durable, seen, version.bump(txn) if is_changed else seen, before is None

    def _count(self, txn: Txn, seen: int) -> int:
        """Return how many there are: as known, if nobody has changed anything since, or else by looking at all."""
        routes = self._mail.routes
        return routes.known if routes.version == seen else durables.count(txn)

    def _empty(self, durable: Durable) -> int:
        lost = 0
        while True:
            more = self._store.data.write(lambda txn: _empty_slice(txn, durable), freeing=True)
            if more is None:
                return lost
            failpoint("expiry-slice")
            lost += more


def shown(name: bytes) -> str:
    """Return its name for the log."""
    return name.decode("utf-8", "backslashreplace")


def _is_expired_still(txn: Txn, durable: Durable) -> bool:
    recorded = durables.get(txn, durable.name)
    return recorded is not None and recorded.id == durable.id and recorded.is_expired


def _end_expiry(txn: Txn, durable: Durable) -> None:
    recorded = durables.get(txn, durable.name)
    if recorded is not None and recorded.id == durable.id:
        durables.put(txn, replace(recorded, is_expired=False))


def _empty_slice(txn: Txn, durable: Durable) -> int | None:
    """Drop names and messages, and note what is lost; how many messages that were, None once nothing is left.

    Two processes may be at it: what it holds since it came back at one of them is not the other's to drop.
    """
    if not _is_expired_still(txn, durable):
        return None
    if receivers.drop_subscriber(txn, durable.id, SLICE):
        return 0
    lost = 0
    for _ in range(SLICE):
        messages = lose_oldest(txn, Mailbox(durable.id), 0, durable.seen_ms)
        if not messages:
            break
        lost += messages
    return lost or None


def _delete_slice(txn: Txn, durable: Durable) -> tuple[int, int, bool]:
    """Delete a part of it; return the version before and after this, and whether nothing is left."""
    seen = version.routes_version(txn)
    removed = receivers.drop_subscriber(txn, durable.id, SLICE)
    if removed < SLICE:
        removed += mailboxes.drop_subscriber(txn, durable.id, SLICE - removed)
    if removed < SLICE:
        removed += losses.drop(txn, durable.id, SLICE - removed)
    if removed >= SLICE:
        return seen, version.routes_version(txn), False
    overflows.remove(txn, durable.id)
    if durables.exists(txn, durable):
        durables.remove(txn, durable.name)
    return seen, version.bump(txn), True


def _limits(durable: Durable) -> tuple[int, int]:
    return durable.max_bytes, durable.max_messages
