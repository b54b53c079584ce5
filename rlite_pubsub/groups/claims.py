"""Pending entries that change hands: a consumer's own history read again, and what others have left lying.

Each function decides first and changes then, because runs must not be changed while they are walked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.groups.pending import Amendment
from rlite_pubsub.storage.groups import pending
from rlite_pubsub.storage.groups.pending import Fate
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import BYTES, Id

if TYPE_CHECKING:
    from rlite_pubsub.groups.consumer import Consumer
    from rlite_pubsub.groups.group import Group


class Pending(NamedTuple):
    """One pending entry."""

    id: bytes
    """Packed."""
    fate: Fate
    """As it was before."""
    entry: bytes | None
    """As it is sent; None if the topic does not have it any more."""


class Sweep(NamedTuple):
    """The result of `idle_from`."""

    claimed: list[Pending]
    deleted: list[bytes]
    """Ids of entries that are gone; these are not pending any more."""
    next_id: Id
    """Where the next one begins; 0-0: from the beginning."""


def walk(group: Group, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX) -> Iterator[tuple[bytes, Fate]]:
    """(packed id, fate) of what is pending, in order, from start to end, both included. Change nothing meanwhile."""
    low, high = entry_ids.pack(start), entry_ids.pack(end)
    for run in pending.walk(group.topic.keyspace.reading(), group.of_group, low):
        ids, fate = run.ids, run.fate
        if ids[:BYTES] > high:
            return
        inside = run.high <= high and ids[:BYTES] >= low
        for at in range(0, len(ids), BYTES):
            packed = ids[at : at + BYTES]
            if inside or low <= packed <= high:
                yield packed, fate


def of_consumer(group: Group, consumer: Consumer, start: Id = entry_ids.MIN) -> Iterator[tuple[bytes, Fate]]:
    """Walk over one consumer; whole runs of others are skipped, and the end is where nothing of it can follow."""
    low, number = entry_ids.pack(start), consumer.number
    left = consumer.pending_count
    if not left:
        return
    for run in pending.walk(group.topic.keyspace.reading(), group.of_group, low):
        if run.fate[0] != number:
            continue
        ids, fate = run.ids, run.fate
        for at in range(0, len(ids), BYTES):
            packed = ids[at : at + BYTES]
            left -= 1
            if packed >= low:
                yield packed, fate
        if not left:
            return


def deliver_again(group: Group, consumer: Consumer, start: Id, count: int, now_ms: int) -> list[Pending]:
    """Return the consumer's own pending entries from `start` on, at most `count` (0: all), delivered once more."""
    found = []
    for item in of_consumer(group, consumer, start):
        found.append(item)
        if len(found) == count:
            break
    entries = _entries(group, [packed for packed, _ in found])
    amendment = Amendment(group)
    for (packed, fate), entry in zip(found, entries, strict=True):
        if entry is not None:
            amendment.put(packed, (fate[0], now_ms, fate[2] + 1))
    amendment.close()
    return [Pending(packed, fate, entry) for (packed, fate), entry in zip(found, entries, strict=True)]


def idle_from(group: Group, start: Id, idle_ms: int, count: int, attempts: int, now_ms: int) -> Sweep:
    """Look at no more than `attempts` pending entries from `start` on, for at most `count` that are idle or deleted."""
    claimed: list[Pending] = []
    deleted: list[bytes] = []
    low = entry_ids.pack(start)
    for run in pending.walk(group.topic.keyspace.reading(), group.of_group, low):
        ids = [run.ids[at : at + BYTES] for at in range(0, len(run.ids), BYTES)]
        if ids[0] < low:
            ids = [packed for packed in ids if packed >= low]
        is_idle = not idle_ms or now_ms - run.fate[1] >= idle_ms
        looked_at = ids[:attempts]
        for packed, entry in zip(looked_at, _entries(group, looked_at), strict=True):
            if not count:
                return Sweep(claimed, deleted, entry_ids.unpack(packed))
            attempts -= 1
            if entry is None:
                deleted.append(packed)
                count -= 1
            elif is_idle:
                claimed.append(Pending(packed, run.fate, entry))
                count -= 1
        if len(looked_at) < len(ids):
            return Sweep(claimed, deleted, entry_ids.unpack(ids[len(looked_at)]))
    return Sweep(claimed, deleted, entry_ids.MIN)


def most_idle(group: Group, idle_ms: int, count: int, now_ms: int) -> list[Pending]:
    """Entries that have been pending for so long, the longest first, at most `count` (0: all)."""
    latest_ms = now_ms - idle_ms
    if not group.has_idle(latest_ms):
        return []
    runs = [run for run in pending.walk(group.topic.keyspace.reading(), group.of_group) if run.fate[1] <= latest_ms]
    runs.sort(key=lambda run: run.fate[1])  # those of one time stay in the order of their ids
    found: list[Pending] = []
    for run in runs:
        ids = [run.ids[at : at + BYTES] for at in range(0, len(run.ids), BYTES)]
        for packed, entry in zip(ids, _entries(group, ids), strict=True):
            if entry is not None:
                found.append(Pending(packed, run.fate, entry))
                if len(found) == count:
                    return found
    return found


def take_over(group: Group, consumer: Consumer, found: list[Pending], now_ms: int, *, counts: bool) -> None:
    """Give these entries to this consumer; `counts`: that is one more delivery."""
    amendment = Amendment(group)
    for packed, fate, _ in found:
        amendment.put(packed, (consumer.number, now_ms, fate[2] + counts))
    amendment.close()


def forget(group: Group, ids: list[bytes]) -> None:
    """Note that these ids are not pending any more."""
    amendment = Amendment(group)
    for packed in ids:
        amendment.remove(packed)
    amendment.close()


def _entries(group: Group, ids: list[bytes]) -> list[bytes | None]:
    topic = group.topic
    return topic.entries(ids)
