"""Entries that a group gives back, and delivers once more: at once, or after a while.

A released entry is not pending: XPENDING does not know it, and it is nobody's until somebody asks for new entries. Its
count of deliveries goes on. XACK of a released entry is heard: it was done after all. What was delivered as often as
the group's limit allows is not delivered once more: see dead_letters.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.groups import dead_letters
from rlite_pubsub.groups.dead_letters import Spent
from rlite_pubsub.storage.groups import released
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.topics.entry_ids import BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlite_pubsub.groups.group import Group

AT_ONCE = 0
MAX_MS = 1 << 48
"""Of a delay, a timeout or a time: more than any clock shows."""
_AT_A_TIME = 1000


class Again(NamedTuple):
    """One entry to be delivered again."""

    id: bytes
    """Packed."""
    deliveries: int
    """Before this one."""
    entry: bytes
    """As it is sent."""


def of_group(group: Group) -> bytes:
    """Return the beginning of the keys of a group's released entries."""
    return released.prefix(group.topic.number, group.number)


def release(group: Group, entries: list[Released]) -> None:
    """Take these out of flight, and wake those who wait for entries of the group, if some can be delivered."""
    txn = group.topic.keyspace.writing()
    prefix = of_group(group)
    kept = [entry for entry in entries if not dead_letters.is_spent(group, entry.deliveries)]
    if len(kept) < len(entries):
        spent = _spent(group, entries)
        if group.topic.has_segments:  # what is in a segment is buried by who can fetch it: `take`
            here = group.topic.entries([one.id for one in spent])
            apart = {one.id for one, entry in zip(spent, here, strict=True) if entry is None}
            spent = [one for one in spent if one.id not in apart]
            kept += [entry for entry in entries if entry.id in apart]
        dead_letters.bury(group, spent)
    for entry in kept:
        released.put(txn, prefix, entry)
    _count(group, len(kept))
    group.topic.wake()


def _spent(group: Group, entries: list[Released]) -> list[Spent]:
    return [
        Spent(one.id, one.deliveries, one.delivered_ms)
        for one in entries
        if dead_letters.is_spent(group, one.deliveries)
    ]


def is_any_due(group: Group, now_ms: int) -> bool:
    """Return whether one can be delivered now."""
    if not group.settings.released:
        return False
    first = released.first_due_ms(group.topic.keyspace.reading(), of_group(group))
    return first is not None and first <= now_ms


def next_ids(group: Group, count: int | None) -> list[bytes]:
    """Return the ids that `take` would look for now, in their own order."""
    keyspace = group.topic.keyspace
    wanted: list[bytes] = []
    for one in released.due(keyspace.settle(), of_group(group), keyspace.clock_ms(), _AT_A_TIME):
        wanted.append(one.id)
        if count and not dead_letters.is_spent(group, one.deliveries):
            count -= 1
            if not count:
                break
    return sorted(wanted)


def take(
    group: Group, count: int | None, now_ms: int, entry_of: Callable[[bytes], bytes | None] | None = None
) -> list[Again]:
    """Take at most `count` that are due, in order; they are no longer released. Those that the topic no longer has, or
    that were delivered too often, are removed. `entry_of` finds an entry that is not under the topic's own key."""
    topic = group.topic
    txn = topic.keyspace.writing()
    prefix = of_group(group)
    taken: list[Again] = []
    while group.settings.released and (count is None or len(taken) < count):
        wanted = _AT_A_TIME if count is None else count - len(taken)
        found = released.due(txn, prefix, now_ms, min(wanted, _AT_A_TIME))
        if not found:
            break
        for one in found:
            released.delete(txn, prefix, one)
        _count(group, -len(found))
        dead_letters.bury(group, _spent(group, found), entry_of)
        left = sorted(one for one in found if not dead_letters.is_spent(group, one.deliveries))
        by_id = dead_letters.entries_of(group, [one.id for one in left], entry_of)
        for one in found:
            entry = by_id.get(one.id)
            if entry is not None:
                taken.append(Again(one.id, one.deliveries, entry))
    return taken


def forget(group: Group, packed_ids: bytes) -> int:
    """Forget released ids; return how many were released."""
    if not group.settings.released:
        return 0
    txn = group.topic.keyspace.writing()
    prefix = of_group(group)
    forgotten = 0
    for at in range(0, len(packed_ids), BYTES):
        found = released.get(txn, prefix, packed_ids[at : at + BYTES])
        if found is not None:
            released.delete(txn, prefix, found)
            forgotten += 1
    if forgotten:
        _count(group, -forgotten)
    return forgotten


def forget_between(group: Group, first: bytes, last: bytes) -> None:
    """Like `forget`, for all ids from first to last, packed: the group was set back, and gets these again."""
    if not group.settings.released:
        return
    ids = []
    for packed in released.ids_from(group.topic.keyspace.writing(), of_group(group), first):
        if packed > last:
            break
        ids.append(packed)
    forget(group, b"".join(ids))


def next_due_ms(group: Group) -> int | None:
    """Return when the next one that is not due yet becomes due."""
    if not group.settings.released:
        return None
    keyspace = group.topic.keyspace
    return released.first_due_ms(keyspace.reading(), of_group(group), keyspace.clock_ms())


def delayed_count(group: Group) -> int:
    """Return how many are not due yet."""
    if not group.settings.released:
        return 0
    keyspace = group.topic.keyspace
    return released.count_after(keyspace.reading(), of_group(group), keyspace.clock_ms())


def _count(group: Group, more: int) -> None:
    if more:
        group.change(released=group.settings.released + more)
    else:
        group.changed()
