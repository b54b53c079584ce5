"""Changing what a group has delivered and nobody has acknowledged: runs are split, rewritten and removed, and the
counters of the group and of its consumers follow.

The store has runs of ids of one fate (storage/groups/pending.py). The common ways are short: what is newly delivered is
one more run, and what is acknowledged is mostly a whole one. Everything else is an `Amendment`.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from rlite_pubsub.groups import flights, release
from rlite_pubsub.storage.groups import in_flight, pending
from rlite_pubsub.storage.groups.pending import MAX_RUN_BYTES, Fate
from rlite_pubsub.storage.topics.entry_ids import BYTES

if TYPE_CHECKING:
    from rlite_pubsub.groups.consumer import Consumer
    from rlite_pubsub.groups.group import Group


def deliver(group: Group, consumer: Consumer, packed_ids: bytes, now_ms: int) -> None:
    """Give these entries, in order, to this consumer, for the first time or as if."""
    group.note_pending(packed_ids)
    txn = group.topic.keyspace.writing()
    of_group = group.of_group
    fate = (consumer.number, now_ms, 1)
    settings = group.settings
    if settings.released:
        release.forget_between(group, packed_ids[:BYTES], packed_ids[-BYTES:])
    if settings.timeout_ms:
        flights.note(group, in_flight.NEW, packed_ids[:BYTES], packed_ids[-BYTES:], now_ms)
    if group.pending_count:
        last = pending.last(txn, of_group)
        if last is not None:
            if last.high >= packed_ids[:BYTES]:  # the group was set back
                amendment = Amendment(group)
                for at in range(0, len(packed_ids), BYTES):
                    amendment.put(packed_ids[at : at + BYTES], fate)
                amendment.close()
                return
            if last.fate == fate and len(last.ids) + len(packed_ids) <= MAX_RUN_BYTES:
                pending.put(txn, last.key, fate, last.ids + packed_ids)
                group.count_pending(consumer, len(packed_ids) // BYTES)
                return
    pending.add(txn, of_group, fate, packed_ids)
    group.count_pending(consumer, len(packed_ids) // BYTES)


def acknowledge(group: Group, packed_ids: bytes) -> int:
    """Acknowledge these ids; return how many of them were pending."""
    if not group.pending_count:
        return 0
    txn = group.topic.keyspace.writing()
    of_group = group.of_group
    acknowledged = 0
    run = None
    ids = low = high = b""
    at, end = 0, len(packed_ids)
    while at < end:
        wanted = packed_ids[at : at + BYTES]
        if not low <= wanted <= high:
            if run is not None and len(ids) != len(run.ids):
                acknowledged += _shrink(group, run, ids)
            run = pending.covering(txn, of_group, wanted)
            if run is None:
                ids = low = high = b""
                at += BYTES
                continue
            ids, low, high = run.ids, run.low, run.high
        place = ids.find(wanted)
        while place > 0 and place % BYTES:
            place = ids.find(wanted, place + 1)
        if place < 0:
            at += BYTES
            continue
        size = min(len(ids) - place, end - at)
        if ids[place : place + size] != packed_ids[at : at + size]:
            size = _agreeing(ids, place, packed_ids, at)
        ids = ids[:place] + ids[place + size :]
        at += size
    if run is not None and len(ids) != len(run.ids):
        acknowledged += _shrink(group, run, ids)
    return acknowledged


def _agreeing(ids: bytes, place: int, others: bytes, at: int) -> int:
    """Return how many bytes of whole ids are equal from here on. The first id is."""
    size = BYTES
    while (packed := ids[place + size : place + size + BYTES]) and packed == others[at + size : at + size + BYTES]:
        size += BYTES
    return size


def _shrink(group: Group, run: pending.PendingRun, ids: bytes) -> int:
    """Only these ids of the run are left; how many have gone."""
    pending.put(group.topic.keyspace.writing(), run.key, run.fate, ids)
    gone = (len(run.ids) - len(ids)) // BYTES
    group.count_pending(group.numbered(run.fate[0]), -gone)
    if group.topic.keyspace.effects is not None:
        left = {ids[at : at + BYTES] for at in range(0, len(ids), BYTES)}
        were = [run.ids[at : at + BYTES] for at in range(0, len(run.ids), BYTES)]
        group.note_pending(b"".join([packed for packed in were if packed not in left]))
    return gone


class Amendment:
    """Changes to single pending entries. One run at a time is in memory; `close` writes the last one."""

    __slots__ = ("_bounds", "_fates", "_group", "_ids", "_is_changed", "_key", "_stored_key", "_txn")

    def __init__(self, group: Group) -> None:
        self._group = group
        self._txn = group.topic.keyspace.writing()
        self._key: bytes | None = None  # the least that the first id of this run may be; None: there is no run yet
        self._stored_key: bytes | None = None  # the run's, if it stands in the store
        self._ids: list[bytes] = []
        self._fates: list[Fate] = []
        self._is_changed = False
        self._bounds: dict[int, tuple[bytes, bytes]] = {}  # by time of delivery: the lowest and the highest id

    def fate(self, packed: bytes) -> Fate | None:
        """Return the state of this pending id; None if it is not pending."""
        place = self._seek(packed)
        return self._fates[place] if place < len(self._ids) and self._ids[place] == packed else None

    def put(self, packed: bytes, fate: Fate) -> None:
        """Make this id pending, in this state, whether it was or not."""
        place = self._seek(packed)
        self._is_changed = True
        self._group.note_pending(packed)
        self._group.note_delivery(fate[1])
        if self._group.settings.timeout_ms:
            low, high = self._bounds.get(fate[1], (packed, packed))
            self._bounds[fate[1]] = min(low, packed), max(high, packed)
        if place < len(self._ids) and self._ids[place] == packed:
            owner = self._fates[place][0]
            if owner != fate[0]:
                self._group.count_pending(self._group.numbered(owner), -1)
                self._group.count_pending(self._group.numbered(fate[0]), 1)
            self._fates[place] = fate
        else:
            self._ids.insert(place, packed)
            self._fates.insert(place, fate)
            self._group.count_pending(self._group.numbered(fate[0]), 1)
            if self._group.settings.released:
                release.forget(self._group, packed)

    def remove(self, packed: bytes) -> bool:
        """Remove this id from the pending ones; return False if it was not pending."""
        place = self._seek(packed)
        if place == len(self._ids) or self._ids[place] != packed:
            return False
        self._is_changed = True
        self._group.note_pending(packed)
        self._group.count_pending(self._group.numbered(self._fates[place][0]), -1)
        del self._ids[place]
        del self._fates[place]
        return True

    def close(self) -> None:
        """Write what is still in memory."""
        if self._is_changed:
            self._write()
        self._key = self._stored_key = None
        self._ids, self._fates, self._is_changed = [], [], False
        bounds, self._bounds = self._bounds, {}
        for delivered_ms, (low, high) in bounds.items():
            flights.note(self._group, in_flight.AGAIN, low, high, delivered_ms)

    def _seek(self, packed: bytes) -> int:
        """Have the run in memory in which this id is, or belongs; its place there."""
        key = self._group.of_group + packed
        if self._key is not None and self._key <= key and self._ids and packed <= self._ids[-1]:
            return bisect_left(self._ids, packed)
        before = pending.before(self._txn, self._group.of_group, packed)
        if self._key is not None and self._key <= key and (before is None or before.key <= self._key):
            return bisect_left(self._ids, packed)  # it belongs behind this run: no other one begins in between
        self.close()
        if before is not None and before.high >= packed:
            self._key = self._stored_key = before.key
            self._ids = [before.ids[at : at + BYTES] for at in range(0, len(before.ids), BYTES)]
            self._fates = [before.fate] * len(self._ids)
            return bisect_left(self._ids, packed)
        self._key = key
        return 0

    def _write(self) -> None:
        """Neighbours of one fate share a run. The first run keeps the key: so what was there is replaced."""
        key = self._stored_key
        start, count = 0, len(self._ids)
        if key is not None and not count:
            pending.put(self._txn, key, (0, 0, 0), b"")
        while start < count:
            fate = self._fates[start]
            stop = start + 1
            while stop < count and self._fates[stop] == fate and (stop - start) * BYTES < MAX_RUN_BYTES:
                stop += 1
            run_key = self._group.of_group + self._ids[start] if key is None else key
            pending.put(self._txn, run_key, fate, b"".join(self._ids[start:stop]))
            key = None
            start = stop
