"""Keeps the index of types at the topic's heels, a little at a time, for entries from HTTP, Redis clients and other
processes.

A step is part of a turn of its own; it stalls the loop no longer than it may, and a topic of millions that was never
served before is taken in while it is being read. What was trimmed goes out of the index as slowly.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

from rlite_pubsub.gateway.events import event
from rlite_pubsub.gateway.streams.cold_reads import attempt
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.topics import entry_ids, type_index
from rlite_pubsub.storage.topics.entry_ids import Id

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace

log = logging.getLogger("rlite_pubsub")

REST_SECONDS = 1.0
STEP_CHUNKS, STEP_ENTRIES = 64, 4096
SWEPT_TYPES = 100


class Indexing:
    """One process's. Two that share a store do not harm each other: each goes on from where the index ends."""

    def __init__(self, keyspace: Keyspace, call_later: Callable[[float, Callable[[], None]], object]) -> None:
        self._keyspace = keyspace
        self._call_later = call_later
        self._is_over = False
        self._is_asleep = True
        self._sweep_from = b""
        self._swept: Id = entry_ids.MIN
        self._is_sweeping = False

    def note(self) -> None:
        """Note that the topic has changed."""
        if self._is_asleep and not self._is_over:
            self._is_asleep = False
            self._call_later(REST_SECONDS, self._work)

    def close(self) -> None:
        """No further steps."""
        self._is_over = True

    def _work(self) -> None:
        if self._is_over:
            return
        start = perf_counter()
        try:
            has_more = self.step()
        except ColdMiss as miss:
            self._go_on(miss)
            return
        except Exception as failure:
            log.warning("Can't index the types of events: %s", self._keyspace.fail(failure))
            has_more = False
        if has_more:
            self._call_later(perf_counter() - start, self._work)
        else:
            self._is_asleep = True

    def _go_on(self, miss: ColdMiss) -> None:
        """Go on when what was missing is here."""

        def work() -> None:
            self._work()
            unpin()

        def here() -> None:
            self._call_later(0.0, work)

        unpin = miss.shelf.fetch(miss, here)

    def step(self) -> bool:
        """Take in, or sweep, a little; to be committed with the turn. Whether there is more. Raises StoreError."""
        keyspace = self._keyspace
        if keyspace.turn.failure is not None or not keyspace.times.may_expire:
            return False
        topic = keyspace.find(event.DATABASE, event.TOPIC)
        if not isinstance(topic, Topic):
            return False
        behind = type_index.indexed(keyspace.reading(), topic.number) < topic.last_id
        if not behind and topic.trimmed_id == self._swept and not self._is_sweeping:
            return False
        topic = keyspace.for_change(event.DATABASE, event.TOPIC)
        if not isinstance(topic, Topic):
            return False
        topic.keyspace.keep(topic)
        has_more = self._take_in(topic)
        return self._sweep(topic) or has_more

    def _take_in(self, topic: Topic) -> bool:
        txn = topic.settle()
        known = type_index.indexed(txn, topic.number)
        start = entry_ids.after(known)
        if known >= topic.last_id or start is None:
            return False
        found: dict[bytes, list[bytes]] = {}
        last, has_more = topic.last_id, False
        parts = topic.between(start)
        looked_at = 0
        for _ in range(STEP_CHUNKS):
            if looked_at >= STEP_ENTRIES:
                has_more = True
                break
            part = attempt(self._keyspace, lambda: next(parts, None))
            if part is None:
                break
            looked_at += part.count
            chunk = part.chunk
            for place, entry in enumerate(chunk.entries(part.start, part.stop), part.start):
                found.setdefault(event.decode(entry)[0], []).append(chunk.id(place))
            last = entry_ids.unpack(part.ids, -entry_ids.BYTES)
        else:
            has_more = True
        type_index.extend(txn, topic.number, found, last if has_more else topic.last_id)
        return has_more

    def _sweep(self, topic: Topic) -> bool:
        """Every type is looked at once for each time that something has been trimmed; what comes then is next."""
        trimmed = topic.trimmed_id
        if not self._is_sweeping:
            if trimmed == self._swept:
                return False
            self._is_sweeping, self._sweep_from, self._swept = True, b"", trimmed
        self._sweep_from = type_index.sweep(
            topic.settle(), topic.number, self._sweep_from, self._swept, SWEPT_TYPES
        )
        self._is_sweeping = bool(self._sweep_from)
        return self._is_sweeping
