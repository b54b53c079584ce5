"""Entries in flight of a group with a timeout: where they are, and when they are over their time.

What becomes of them then is landing.py's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.groups import release
from rlite_pubsub.storage.groups import in_flight, pending
from rlite_pubsub.storage.topics import deadlines
from rlite_pubsub.storage.topics.entry_ids import BYTES

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group

MOST_GRAIN_MS = 100


def note(group: Group, kind: int, first: bytes, last: bytes, delivered_ms: int) -> None:
    """Entries between these ids were delivered then, and the group has a timeout. A hundredth of it is how late they
    may be noticed."""
    timeout_ms = group.settings.timeout_ms
    grain_ms = min(max(timeout_ms // 100, 1), MOST_GRAIN_MS)
    by_ms = -(-delivered_ms // grain_ms) * grain_ms
    topic = group.topic
    in_flight.note(topic.keyspace.writing(), topic.number, group.number, by_ms, kind, first, last)
    bring_forward(group, by_ms + timeout_ms)


def note_all(group: Group) -> None:
    """Note all pending entries of a group that had no timeout before."""
    for run in list(pending.walk(group.topic.keyspace.writing(), group.of_group)):
        note(group, in_flight.AGAIN, run.ids[:BYTES], run.high, run.fate[1])


def forget_all(group: Group) -> None:
    """Forget the entries of a group that has no timeout any more."""
    in_flight.delete_all(group.topic.keyspace.writing(), group.topic.number, group.number)


# -- when


def bring_forward(group: Group, at_ms: int) -> None:
    """Make sure that it is looked at by this time."""
    if at_ms < group.due_ms():
        group.set_due(at_ms)


def postpone(group: Group, at_ms: int) -> None:
    """Put off to this time what is due: it cannot be done now."""
    group.set_due(at_ms)


def reckon(group: Group) -> None:
    """Recalculate when something is to be done next."""
    topic, timeout_ms = group.topic, group.settings.timeout_ms
    times = [deadlines.NEVER]
    if timeout_ms:
        first = next(in_flight.walk(topic.keyspace.reading(), topic.number, group.number), None)
        times += [first.delivered_ms + timeout_ms] if first is not None else []
    waiting_until = release.next_due_ms(group)
    if waiting_until is not None:
        times.append(waiting_until)
    if min(times) != group.due_ms():
        group.set_due(min(times))
