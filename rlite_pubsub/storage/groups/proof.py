"""Checks that the records of groups fit each other: consumers and their names, runs of pending entries and their
counts, released entries in both orders, and the records of entries in flight.

Every transaction leaves them consistent. A fault is damage, or a bug of this program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from struct import Struct

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.groups import consumers, groups, in_flight, pending, released
from rlite_pubsub.storage.groups.groups import GroupRecord
from rlite_pubsub.storage.topics import deadlines, entry_ids
from rlite_pubsub.storage.topics.proof import TopicHead

_GROUP = Struct(">QI")
_CONSUMER = Struct(">I")
_OF_A_GROUP = (databases.CONSUMERS, databases.PENDING, databases.RELEASED, databases.IN_FLIGHT)


def faults(txn: Txn, topics: dict[int, TopicHead]) -> Iterator[str]:
    """Yield the faults. `topics`: all existing topics, by number."""
    known: set[tuple[int, int]] = set()
    for number, topic in topics.items():
        of_topic = list(groups.of_topic(txn, number))
        if len(of_topic) != topic.groups:
            yield f"topic {topic.name!r} counts {topic.groups} groups, and has {len(of_topic)}"
        for group in of_topic:
            if group.number > topic.last_group or (number, group.number) in known:
                yield f"topic {topic.name!r} has group {group.name!r} under the number of another one"
            known.add((number, group.number))
            for look in (_of_consumers, _of_pending, _of_released, _of_timeouts):
                yield from (
                    f"group {group.name!r} of topic {topic.name!r} {fault}" for fault in look(txn, number, group)
                )
    for database in _OF_A_GROUP:
        for head in databases.heads(txn, database, _GROUP.size):
            number, of_group = _GROUP.unpack(head)
            if number in topics and (number, of_group) not in known:
                yield f"topic {topics[number].name!r} has rows {database!r} of group {of_group}, which is not there"


def _of_consumers(txn: Txn, topic: int, group: GroupRecord) -> Iterator[str]:
    by_number = {one.number: one.name for one in consumers.of_group(txn, topic, group.number)}
    names = databases.CONSUMERS + _GROUP.pack(topic, group.number) + _CONSUMER.pack(0)
    by_name = {
        _CONSUMER.unpack_from(value)[0]: key_parts.split(key, len(names), value[_CONSUMER.size :])[0]
        for key, value in databases.items(txn, names)
    }
    if by_number != by_name:
        yield "has consumers that are not found by their names, or names without a consumer"
    if len(by_number) != group.consumers or max(by_number, default=0) > group.last_consumer:
        yield f"counts {group.consumers} consumers up to {group.last_consumer}, and has {len(by_number)}"


def _of_pending(txn: Txn, topic: int, group: GroupRecord) -> Iterator[str]:
    has: Counter[int] = Counter()
    before = b""
    for run in pending.walk(txn, pending.prefix(topic, group.number)):
        ids = _ids(run.ids)
        if not before < run.low <= ids[0] or ids != sorted(set(ids)):
            yield f"has runs of pending entries that overlap, or are out of order, at {entry_ids.unpack(ids[0])}"
        before = ids[-1]
        has[run.fate[0]] += len(ids)
    says = {one.number: one.pending for one in consumers.of_group(txn, topic, group.number) if one.pending}
    if dict(has) != says:
        yield f"has consumers that count {says} pending entries, and they have {dict(has)}"
    if sum(has.values()) != group.pending:
        yield f"counts {group.pending} pending entries, and has {sum(has.values())}"


def _of_released(txn: Txn, topic: int, group: GroupRecord) -> Iterator[str]:
    of_group = released.prefix(topic, group.number)
    by_id = {id: released.get(txn, of_group, id) for id in released.ids_from(txn, of_group)}
    by_time = of_group + b"\1"
    ordered = {
        (key[-entry_ids.BYTES :], int.from_bytes(key[len(by_time) :][:8], "big"))
        for key, _ in databases.items(txn, by_time)
    }
    if {(id, one.due_ms) for id, one in by_id.items() if one is not None} != ordered:
        yield "has released entries that are not found by both of their orders"
    for id in by_id:
        run = pending.covering(txn, pending.prefix(topic, group.number), id)
        if run is not None and id in _ids(run.ids):
            yield f"has entry {entry_ids.unpack(id)} both released and pending"


def _of_timeouts(txn: Txn, topic: int, group: GroupRecord) -> Iterator[str]:
    row = deadlines.group_row(txn, topic, group.number)
    if row is not None and row.name != group.name:
        yield f"has the deadlines of {row.name!r}"
    if not group.settings.timeout_ms:
        return
    noted = [(batch.first, batch.last) for batch in in_flight.walk(txn, topic, group.number)]
    for run in pending.walk(txn, pending.prefix(topic, group.number)):
        for id in _ids(run.ids):
            if not any(first <= id <= last for first, last in noted):
                yield f"has entry {entry_ids.unpack(id)} in flight, and will not look for it when its time is over"
                return
    if group.pending and (row is None or row.due_ms == deadlines.NEVER):
        yield "has entries in flight, and no deadline for them"


def _ids(packed: bytes) -> list[bytes]:
    return [packed[at : at + entry_ids.BYTES] for at in range(0, len(packed), entry_ids.BYTES)]
