"""Work that is done when it is due: deferred entries are appended, entries in flight for too long are released, and
clients that wait for released entries are woken.

Promises:
 - One look-up says whether there is anything to do, however many topics and groups there are.
 - The event loop does not wait for the cold store: a group whose dead letters have to be fetched first comes later, and
   keeps nobody else waiting.
 - A step is short, and a transaction of its own. Any process that has the store may take the next one: it looks again
   at what is due in its own write transaction, so that two of them do nothing twice.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING

from rlite_pubsub.groups import flights, landing
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss, ColdUnreadable
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.topics import deadlines

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.part import Part

log = logging.getLogger("rlite_pubsub")

FETCHING_MS = 50
UNREADABLE_MS = 2000

def next_ms(part: Part) -> int | None:
    """Return when something is due next. Raises StoreError."""
    first = deadlines.first(part.settle())
    return None if first is None else first.due_ms


def step(part: Part) -> bool:
    """Do a little of what is due, to be committed with the turn. Whether there may be more. Raises StoreError, and
    ColdMiss where something is to be fetched for one whose turn comes again soon."""
    now_ms = part.clock_ms()
    due_ms = next_ms(part)
    if due_ms is None or due_ms > now_ms:
        return False
    part.writing()
    deadline = deadlines.first(part.settle())  # somebody else may have done it meanwhile
    if deadline is None or deadline.due_ms > now_ms:
        return False
    topic = _topic(part, deadline.topic)
    if topic is None:
        deadlines.remove(part.writing(), deadline)
    elif not deadline.group:
        deferral.append_due(topic, now_ms)
    else:
        _tend(part, topic, deadline, now_ms)
    return True


def _tend(part: Part, topic: Topic, deadline: deadlines.Deadline, now_ms: int) -> None:
    """Look after one of its groups."""
    txn = part.writing()
    row = deadlines.group_row(txn, topic.number, deadline.group)
    group = group_of(topic, row.name) if row is not None else None
    if group is None or group.number != deadline.group:
        deadlines.remove(txn, deadline)
        return
    cold = topic.keyspace.cold.shelf if topic.has_cold else None
    try:
        with cold.waiting() if cold is not None else nullcontext():
            has_more = landing.land(group, now_ms)
    except ColdUnreadable as failure:
        flights.postpone(group, now_ms + UNREADABLE_MS)
        log.warning("Dead letters of topic %r wait: %s", topic.name, failure.text.decode(errors="replace"))
        return
    except ColdMiss:
        flights.postpone(group, now_ms + FETCHING_MS)
        raise
    if not has_more:
        flights.reckon(group)
    topic.wake()


def _topic(part: Part, number: int) -> Topic | None:
    """Return the topic of this number, to be changed; None if it is gone."""
    txn = part.writing()
    row = deadlines.topic_row(txn, number)
    stored = key_records.get(txn, row.place) if row is not None else None
    if row is None or stored is None:
        return None
    space = key_records.space_of(row.place)
    databases = {found.number: database for database, found in part.spaces().items()}
    if space not in databases:
        return None
    topic = part.names.for_change(databases[space], stored.name)
    return topic if isinstance(topic, Topic) and topic.number == number else None
