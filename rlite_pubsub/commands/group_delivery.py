"""What XREADGROUP answers for one key: entries are delivered, or a consumer's own are delivered again.

A read of new entries copies what the chunks have, and is one more run of pending entries. Before new entries come those
that the group has given back (delivery/redelivery.py).
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.commands.group_lookup import consumer_of
from rlite_pubsub.delivery import claims, dead_letters, flights, pending, redelivery
from rlite_pubsub.delivery.claims import Pending
from rlite_pubsub.delivery.group import Group
from rlite_pubsub.delivery.pending import Amendment
from rlite_pubsub.delivery.progress import look_ahead, read_on
from rlite_pubsub.delivery.redelivery import Again
from rlite_pubsub.protocol.replies import NULL_ARRAY, Encoded, Reply
from rlite_pubsub.storage import entry_ids
from rlite_pubsub.storage.chunks import Part
from rlite_pubsub.storage.entry_ids import MAX, Id

if TYPE_CHECKING:
    from rlite_pubsub.commands.session import CommandSession
    from rlite_pubsub.commands.stream_arguments import Reading
    from rlite_pubsub.delivery.consumer import Consumer

NEW = MAX
"""What `>` is read as; no entry can follow it, so that it is free to mean this."""
_NEVER_DELIVERED = b":0\r\n:0\r\n"


class Target(NamedTuple):
    """What is to be read of one key."""

    key: bytes
    group: Group
    start: Id


def may_have_something(target: Target, wanted: Reading) -> bool:
    """Whether it is worth a look, which may need the right to write. History always is an answer."""
    group = target.group
    if target.start != NEW:
        return True
    if group.is_stopped:
        return False
    if group.topic.last_id > group.last_id or (wanted.claim_idle_ms is not None and group.pending_count > 0):
        return True
    settings = group.settings
    if settings.released or settings.timeout_ms:
        now_ms = group.topic.keyspace.clock_ms()
        return redelivery.is_any_due(group, now_ms) or flights.due_ms(group) <= now_ms
    return False


def has_landed(target: Target) -> bool:
    """Whether something that was delivered is over its time, and is to be delivered again."""
    group = target.group
    return target.start == NEW and bool(group.settings.timeout_ms) and flights.due_ms(group) <= _now_ms(group)


def land(target: Target) -> None:
    """Have it released, so that it is known what will be delivered."""
    if has_landed(target):
        flights.land(target.group, _now_ms(target.group))


def _now_ms(group: Group) -> int:
    return group.topic.keyspace.clock_ms()


def delivered(session: CommandSession, target: Target, wanted: Reading, *, even_nothing: bool = False) -> Reply:
    """Deliver what there is for this key, as the array of its entries. None: there is nothing, and nothing was done."""
    group = target.group
    now_ms = group.topic.keyspace.clock_ms()
    if target.start != NEW:
        consumer = consumer_of(session, group, wanted.consumer)
        following = entry_ids.after(target.start)
        assert following is not None
        history = claims.deliver_again(group, consumer, following, wanted.count, now_ms)
        return [_of_history(item) for item in history]
    idle_ms, count = wanted.claim_idle_ms, wanted.count
    settings = group.settings
    if settings.timeout_ms and flights.due_ms(group) <= now_ms:
        flights.land(group, now_ms)
    claimed = [] if idle_ms is None else _claimed(group, idle_ms, count, now_ms)
    again: list[Again] = []
    if group.settings.released and (not count or len(claimed) < count):
        again = redelivery.take(group, count - len(claimed) if count else None, now_ms)
    known = len(claimed) + len(again)
    parts: list[Part] = []
    if not count or known < count:
        parts = _following(group, count - known if count else None)
    if not parts and not known and not even_nothing:
        return None
    consumer = consumer_of(session, group, wanted.consumer)
    if claimed:
        claims.take_over(group, consumer, claimed, now_ms, counts=True)
    if again and not wanted.no_ack:
        _deliver_again(group, consumer, again, now_ms)
    ids = b"".join([part.ids for part in parts])
    if ids:
        group.entries_read = read_on(group.topic, group.entries_read, ids)
        group.last_id = entry_ids.unpack(ids, len(ids) - entry_ids.BYTES)
        group.changed()
        if not wanted.no_ack:
            pending.deliver(group, consumer, ids, now_ms)
    if idle_ms is not None:
        return Encoded(_with_deliveries(claimed, again, parts, now_ms))
    wire = b"".join([one.entry for one in again] + [part.wire for part in parts])
    return Encoded(b"*%d\r\n%b" % (len(again) + len(ids) // entry_ids.BYTES, wire))


def ahead(target: Target, wanted: Reading) -> None:
    """Read what `delivered` will read, as far as that can be known before."""
    group = target.group
    if target.start == NEW:
        known = len(redelivery.next_ids(group, wanted.count or None)) if group.settings.released else 0
        if known:
            group.topic.entries(redelivery.next_ids(group, wanted.count or None))
        if wanted.claim_idle_ms is not None:
            claims.most_idle(group, wanted.claim_idle_ms, wanted.count, group.topic.keyspace.clock_ms())
        if not group.is_stopped and not 0 < wanted.count <= known:
            _following(group, wanted.count - known if wanted.count else None)
            look_ahead(group.topic, group.entries_read, group.last_id)
    else:
        consumer = group.consumer(wanted.consumer)
        following = entry_ids.after(target.start)
        if consumer is not None and following is not None:
            own = claims.of_consumer(group, consumer, following)
            group.topic.entries([packed for packed, _ in islice(own, wanted.count or None)])


def _following(group: Group, count: int | None) -> list[Part]:
    """The entries behind the last one that the group was given."""
    start = entry_ids.after(group.last_id)
    return [] if start is None else list(group.topic.between(start, limit=count))


def _claimed(group: Group, idle_ms: int, count: int, now_ms: int) -> list[Pending]:
    """What CLAIM gives: those that were delivered too often leave the group instead."""
    found = claims.most_idle(group, idle_ms, count, now_ms)
    spent = [one for one in found if dead_letters.is_spent(group, one.fate[2])]
    if not spent:
        return found
    claims.forget(group, [one.id for one in spent])
    dead_letters.bury(group, [(one.id, one.fate[2]) for one in spent])
    return [one for one in found if one not in spent]


def _deliver_again(group: Group, consumer: Consumer, again: list[Again], now_ms: int) -> None:
    amendment = Amendment(group)
    for one in again:
        amendment.put(one.id, (consumer.number, now_ms, one.deliveries + 1))
    amendment.close()


def _with_deliveries(claimed: list[Pending], again: list[Again], parts: list[Part], now_ms: int) -> bytes:
    """With CLAIM each entry tells for how long it was idle, and how often it had been delivered."""
    entries = [
        b"*4%b:%d\r\n:%d\r\n" % (entry[2:], max(now_ms - fate[1], 0), fate[2])
        for _, fate, entry in claimed
        if entry is not None
    ]
    entries += [b"*4%b:0\r\n:%d\r\n" % (one.entry[2:], one.deliveries) for one in again]
    for part in parts:
        entries += [b"*4" + entry[2:] + _NEVER_DELIVERED for entry in part.chunk.entries(part.start, part.stop)]
    return b"*%d\r\n%b" % (len(entries), b"".join(entries))


def _of_history(item: Pending) -> Reply:
    if item.entry is None:
        return [entry_ids.text(entry_ids.unpack(item.id)), NULL_ARRAY]
    return Encoded(item.entry)
