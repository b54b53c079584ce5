"""Entries in flight of a group with a timeout: when they are over their time, and what becomes of them then.

Promise: an entry that has been pending for longer than its group's timeout is released, whoever it was delivered to and
however. What is noted at each delivery is where to look, and when; the fates of pending entries decide.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rlite_pubsub.groups import release
from rlite_pubsub.storage.groups import in_flight, pending
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.topics import deadlines
from rlite_pubsub.storage.topics.deadlines import GroupRow
from rlite_pubsub.storage.topics.entry_ids import BYTES

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.storage.groups.in_flight import Batch

MOST_GRAIN_MS = 100
STEP_ENTRIES = 200
"""Released in one step, or a run more."""
STEP_RUNS = 500
"""Looked at in one step."""
_STEP_BATCHES = 50


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
    """The group has a timeout now, and had none before."""
    for run in list(pending.walk(group.topic.keyspace.writing(), group.of_group)):
        note(group, in_flight.AGAIN, run.ids[:BYTES], run.high, run.fate[1])


def forget_all(group: Group) -> None:
    """The group has no timeout any more."""
    in_flight.delete_all(group.topic.keyspace.writing(), group.topic.number, group.number)


# -- when


def due_ms(group: Group) -> int:
    """When something of the group is to be done."""
    if group.due_ms is None:
        row = deadlines.group_row(group.topic.keyspace.reading(), group.topic.number, group.number)
        group.due_ms = deadlines.NEVER if row is None else row.due_ms
    return group.due_ms


def bring_forward(group: Group, at_ms: int) -> None:
    """Something is to be done at this time, if not before."""
    if at_ms < due_ms(group):
        _put(group, at_ms)


def reckon(group: Group) -> None:
    """Find out anew when something is to be done next."""
    topic, timeout_ms = group.topic, group.settings.timeout_ms
    times = [deadlines.NEVER]
    if timeout_ms:
        first = next(in_flight.walk(topic.keyspace.reading(), topic.number, group.number), None)
        times += [first.delivered_ms + timeout_ms] if first is not None else []
    waiting_until = release.next_due_ms(group)
    if waiting_until is not None:
        times.append(waiting_until)
    if min(times) != due_ms(group):
        _put(group, min(times))


def _put(group: Group, at_ms: int) -> None:
    topic = group.topic
    row = GroupRow(at_ms, group.name)
    deadlines.put_group(topic.keyspace.writing(), topic.number, topic.place, group.number, row)
    group.due_ms = at_ms
    if at_ms != deadlines.NEVER:
        topic.keyspace.on_deadline(at_ms)
        topic.keyspace.touched[topic.database, topic.name] = None  # who waits elsewhere may be the one to do it


# -- what becomes of them


def land(group: Group, now_ms: int) -> bool:
    """Release some of those that are over their time. Whether there may be more."""
    timeout_ms = group.settings.timeout_ms
    if not timeout_ms:
        return False
    from rlite_pubsub.groups.pending import acknowledge

    topic = group.topic
    txn = topic.keyspace.writing()
    runs_left, entries_left = STEP_RUNS, STEP_ENTRIES
    for batch in list(islice(in_flight.walk(txn, topic.number, group.number), _STEP_BATCHES)):
        if batch.delivered_ms + timeout_ms > now_ms:
            return False
        over, next_id, looked_at = _over(group, batch, now_ms - timeout_ms, runs_left, entries_left)
        in_flight.go_on_from(txn, batch, next_id)
        for run in over:
            acknowledge(group, run.ids)
            ids = [run.ids[at : at + BYTES] for at in range(0, len(run.ids), BYTES)]
            group.settings = group.settings._replace(timed_out=group.settings.timed_out + len(ids))
            release.release(group, [Released(packed, release.AT_ONCE, run.fate[2]) for packed in ids])
            entries_left -= len(ids)
        runs_left -= looked_at
        if next_id is not None or runs_left <= 0 or entries_left <= 0:
            return True
    return next(in_flight.walk(txn, topic.number, group.number), None) is not None


def _over(
    group: Group, batch: Batch, latest_ms: int, runs_left: int, entries_left: int
) -> tuple[list[pending.Run], bytes | None, int]:
    """The runs of a batch that were delivered by then, from where to go on (None: these are all), and how many runs
    were looked at."""
    found: list[pending.Run] = []
    looked_at = 0
    for run in pending.walk(group.topic.keyspace.reading(), group.of_group, batch.first):
        first = run.ids[:BYTES]
        if first > batch.last:
            break
        if looked_at == runs_left or entries_left <= 0:
            return found, first, looked_at
        looked_at += 1
        if run.fate[1] <= latest_ms:
            found.append(run)
            entries_left -= len(run.ids) // BYTES
    return found, None, looked_at
