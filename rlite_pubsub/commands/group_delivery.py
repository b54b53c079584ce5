"""What XREADGROUP answers for one key: entries are delivered, or a consumer's own are delivered again.

A read of new entries copies what the chunks have, and is one more run of pending entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.commands.group_lookup import consumer_of
from rlite_pubsub.delivery import claims, pending
from rlite_pubsub.delivery.claims import Pending
from rlite_pubsub.delivery.group import Group
from rlite_pubsub.delivery.progress import read_on
from rlite_pubsub.protocol.replies import NULL_ARRAY, Encoded, Reply
from rlite_pubsub.storage import entry_ids
from rlite_pubsub.storage.chunks import Part
from rlite_pubsub.storage.entry_ids import MAX, Id

if TYPE_CHECKING:
    from rlite_pubsub.commands.session import CommandSession
    from rlite_pubsub.commands.stream_arguments import Reading

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
    if target.start != NEW or group.topic.last_id > group.last_id:
        return True
    return wanted.claim_idle_ms is not None and group.pending_count > 0


def delivered(session: CommandSession, target: Target, wanted: Reading, *, even_nothing: bool = False) -> Reply:
    """Deliver what there is for this key, as the array of its entries. None: there is nothing, and nothing was done."""
    group = target.group
    now_ms = group.topic.keyspace.clock_ms()
    if target.start != NEW:
        consumer = consumer_of(session, group, wanted.consumer)
        following = entry_ids.after(target.start)
        assert following is not None
        again = claims.deliver_again(group, consumer, following, wanted.count, now_ms)
        return [_of_history(item) for item in again]
    idle_ms, count = wanted.claim_idle_ms, wanted.count
    claimed = [] if idle_ms is None else claims.most_idle(group, idle_ms, count, now_ms)
    parts: list[Part] = []
    if not count or len(claimed) < count:
        parts = _following(group, count - len(claimed) if count else None)
    if not parts and not claimed and not even_nothing:
        return None
    consumer = consumer_of(session, group, wanted.consumer)
    if claimed:
        claims.take_over(group, consumer, claimed, now_ms, counts=True)
    ids = b"".join([part.ids for part in parts])
    if ids:
        group.entries_read = read_on(group.topic, group.entries_read, ids)
        group.last_id = entry_ids.unpack(ids, len(ids) - entry_ids.BYTES)
        group.changed()
        if not wanted.no_ack:
            pending.deliver(group, consumer, ids, now_ms)
    if idle_ms is None:
        return Encoded(b"*%d\r\n%b" % (len(ids) // entry_ids.BYTES, b"".join([part.wire for part in parts])))
    return Encoded(_with_deliveries(claimed, parts, now_ms))


def _following(group: Group, count: int | None) -> list[Part]:
    """The entries behind the last one that the group was given."""
    start = entry_ids.after(group.last_id)
    return [] if start is None else list(group.topic.between(start, limit=count))


def _with_deliveries(claimed: list[Pending], parts: list[Part], now_ms: int) -> bytes:
    """With CLAIM each entry tells for how long it was idle, and how often it had been delivered."""
    entries = [
        b"*4%b:%d\r\n:%d\r\n" % (entry[2:], max(now_ms - fate[1], 0), fate[2])
        for _, fate, entry in claimed
        if entry is not None
    ]
    for part in parts:
        entries += [b"*4" + entry[2:] + _NEVER_DELIVERED for entry in part.chunk.entries()[part.start : part.stop]]
    return b"*%d\r\n%b" % (len(entries), b"".join(entries))


def _of_history(item: Pending) -> Reply:
    if item.entry is None:
        return [entry_ids.text(entry_ids.unpack(item.id)), NULL_ARRAY]
    return Encoded(item.entry)
