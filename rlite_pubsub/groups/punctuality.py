"""What is done when its time has come: deferred entries are appended, what is in flight for too long is released, and
whoever waits for released entries is woken.

Promises:
 - One look-up says whether there is anything to do, however many topics and groups there are.
 - A step is short, and a transaction of its own. Any process that has the store may take the next one: it looks again
   at what is due in its own write transaction, so that two of them do nothing twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.groups import flights, landing
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.keys import key_records
from rlite_pubsub.storage.topics import deadlines

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.part import Part


def next_ms(part: Part) -> int | None:
    """When something is to be done next. Raises StoreError."""
    first = deadlines.first(part.settle())
    return None if first is None else first.due_ms


def step(part: Part) -> bool:
    """Do a little of what is due, to be committed with the turn. Whether there may be more. Raises StoreError."""
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
    if not landing.land(group, now_ms):
        flights.reckon(group)
    topic.wake()


def _topic(part: Part, number: int) -> Topic | None:
    """The topic of this number, to be changed; None if it is gone."""
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
