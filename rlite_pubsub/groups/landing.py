"""Entries that have been in flight for too long are released, a little at a time.

Promise: an entry that has been pending for longer than its group's timeout is released, whichever consumer it was
delivered to and however. The notes of each delivery (flights.py) say where to look, and when; the state of the pending
entries decides.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rlite_pubsub.groups import dead_letters, release
from rlite_pubsub.groups.pending import acknowledge
from rlite_pubsub.storage.groups import in_flight, pending
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.topics.entry_ids import BYTES

if TYPE_CHECKING:
    from rlite_pubsub.groups.group import Group
    from rlite_pubsub.storage.groups.in_flight import FlightBatch

STEP_ENTRIES = 200
"""Released in one step, or a run more."""
STEP_RUNS = 500
"""Looked at in one step."""
_STEP_BATCHES = 50


def land(group: Group, now_ms: int) -> bool:
    """Release some of those that are over their time. Whether there may be more. Raises ColdMiss and ColdUnreadable
    where one that is to be buried can't be read: what was done stands, and is whole."""
    timeout_ms = group.settings.timeout_ms
    if not timeout_ms:
        return False
    topic = group.topic
    txn = topic.keyspace.writing()
    runs_left, entries_left = STEP_RUNS, STEP_ENTRIES
    for batch in list(islice(in_flight.walk(txn, topic.number, group.number), _STEP_BATCHES)):
        if batch.delivered_ms + timeout_ms > now_ms:
            return False
        over, next_id, looked_at = _over(group, batch, now_ms - timeout_ms, runs_left, entries_left)
        if topic.has_cold:
            dead_letters.look_at(group, [(packed, run.fate[2]) for run in over for packed in _ids(run)])
        in_flight.go_on_from(txn, batch, next_id)
        for run in over:
            acknowledge(group, run.ids)
            ids = _ids(run)
            group.change(timed_out=group.settings.timed_out + len(ids))
            release.release(group, [Released(packed, release.AT_ONCE, run.fate[2], run.fate[1]) for packed in ids])
            entries_left -= len(ids)
        runs_left -= looked_at
        if next_id is not None or runs_left <= 0 or entries_left <= 0:
            return True
    return next(in_flight.walk(txn, topic.number, group.number), None) is not None


def _over(
    group: Group, batch: FlightBatch, latest_ms: int, runs_left: int, entries_left: int
) -> tuple[list[pending.PendingRun], bytes | None, int]:
    """The runs of a batch that were delivered by then, from where to go on (None: these are all), and how many runs
    were looked at."""
    found: list[pending.PendingRun] = []
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


def _ids(run: pending.PendingRun) -> list[bytes]:
    return [run.ids[at : at + BYTES] for at in range(0, len(run.ids), BYTES)]
