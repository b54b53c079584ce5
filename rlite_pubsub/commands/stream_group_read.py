"""XREADGROUP and XACK: entries are delivered to consumers, and acknowledged.

These two are what a consumer does all day. A read of new entries copies what the chunks have, and is one more run of
pending entries; an acknowledgement of the same ids is compared with the run and removes it.
"""

from __future__ import annotations

from struct import Struct
from struct import error as OutOfRange
from typing import NamedTuple

from rlite_pubsub.commands.group_lookup import consumer_of, find_group, latest, no_group
from rlite_pubsub.commands.lookup import find_topic
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.stream_arguments import Reading, of_keys, reading
from rlite_pubsub.commands.stream_ids import strict_id
from rlite_pubsub.commands.table import Arg, KeySpec, command
from rlite_pubsub.delivery import claims, pending
from rlite_pubsub.delivery.claims import Pending
from rlite_pubsub.delivery.group import Group
from rlite_pubsub.delivery.progress import read_on
from rlite_pubsub.delivery.topic import Topic
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import NULL_ARRAY, Encoded, Reply
from rlite_pubsub.storage import entry_ids
from rlite_pubsub.storage.chunks import Part
from rlite_pubsub.storage.entry_ids import MAX, Id

_NO_DOLLAR = (
    b"ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by "
    b"specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
)
_WITH_GROUP = b" in XREADGROUP with GROUP option"
_KEY_GONE = b"UNBLOCKED the stream key no longer exists"
_GROUP_GONE = b"NOGROUP the consumer group this client was blocked on no longer exists"
_BLOCKED_COUNT = 1000
"""Who has waited and names no COUNT gets no more at once."""
_NEW = MAX
"""What `>` is read as; no entry can follow it, so that it is free to mean this."""
_NEVER_DELIVERED = b":0\r\n:0\r\n"
_DIGITS = b"0123456789"
_LONG_ZEROS = b"0" * 40


class _Target(NamedTuple):
    """What is to be read of one key."""

    key: bytes
    group: Group
    start: Id


@command(
    "xreadgroup",
    arity=-7,
    flags="blocking write",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Return new entries from a stream using a consumer group, or access the history of the pending entries for "
    "a given consumer. Can block.",
    complexity="For each stream mentioned: O(M) with M being the number of elements returned. If M is constant (e.g. "
    "always asking for the first 10 elements with COUNT), you can consider it O(1). On the other side when XREADGROUP "
    "blocks, XADD will pay the O(N) time in order to serve the N clients blocked on the stream getting new data.",
    arguments=(
        Arg("group_consumer", "block", token="GROUP", arguments=(Arg("group"), Arg("consumer"))),
        Arg("count", "integer", token="COUNT", optional=True),
        Arg("milliseconds", "integer", token="BLOCK", optional=True),
        Arg("noack", "pure-token", token="NOACK", optional=True),
        Arg(
            "streams",
            "block",
            token="STREAMS",
            arguments=(Arg("key", "key", key_spec=0, multiple=True), Arg("ID", multiple=True)),
        ),
    ),
    key_specs=(KeySpec(("RO", "ACCESS"), ("keyword", "STREAMS", 4), ("range", -1, 1, 2)),),
)
def xreadgroup(session: CommandSession, args: list[bytes]) -> Reply:
    wanted = reading(args, by_group=True)
    targets = _targets(session, wanted)
    keyspace = targets[0].group.topic.keyspace
    found: list[tuple[bytes, Reply]] = []
    if any(_may_have_something(target, wanted) for target in targets):
        if not keyspace.turn.writes:
            keyspace.writing()
            targets = _targets(session, wanted)  # the latest
        for target in targets:
            reply = _delivered(session, target, wanted) if _may_have_something(target, wanted) else None
            if reply is not None:
                found.append((target.key, reply))
    if found:
        return of_keys(session, found)
    if wanted.block_ms is None:
        return NULL_ARRAY
    return _block(session, wanted, wanted.block_ms)


def _targets(session: CommandSession, wanted: Reading) -> list[_Target]:
    name = wanted.group
    assert name is not None
    targets = []
    for key, text in zip(wanted.keys, wanted.ids, strict=True):
        topic = find_topic(session, key)
        group = None if topic is None else topic.group(name)
        if group is None:
            raise no_group(key, name, _WITH_GROUP)
        if text == b">":
            start = _NEW
        elif text == b"$":
            raise CommandError(_NO_DOLLAR)
        else:
            start = strict_id(text)
        targets.append(_Target(key, group, start))
    return targets


def _may_have_something(target: _Target, wanted: Reading) -> bool:
    """Whether it is worth a look, which may need the right to write. History always is an answer."""
    group = target.group
    if target.start != _NEW or group.topic.last_id > group.last_id:
        return True
    return wanted.claim_idle_ms is not None and group.pending_count > 0


def _delivered(session: CommandSession, target: _Target, wanted: Reading, *, even_nothing: bool = False) -> Reply:
    """Deliver what there is for this key, as the array of its entries. None: there is nothing, and nothing was done."""
    group = target.group
    now_ms = group.topic.keyspace.clock_ms()
    if target.start != _NEW:
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


def _block(session: CommandSession, wanted: Reading, block_ms: int) -> Reply:
    if not wanted.count:
        wanted = wanted._replace(count=_BLOCKED_COUNT)
    keyspace = session.instance.keyspace
    assert keyspace is not None

    def attempt(key: bytes) -> Reply:
        """What there is by now for a session that waits: something new has come even if it is gone again."""
        group = _group_waited_for(keyspace.find(session.db, key), wanted.group)
        if not _may_have_something(_Target(key, group, _NEW), wanted):
            return None
        if not keyspace.turn.writes:
            group = _group_waited_for(keyspace.for_change(session.db, key), wanted.group)
        has_come = group.topic.last_id > group.last_id
        reply = _delivered(session, _Target(key, group, _NEW), wanted, even_nothing=has_come)
        return None if reply is None else of_keys(session, [(key, reply)])

    queue = None if wanted.claim_idle_ms is not None else [(b"group", wanted.group)] * len(wanted.keys)
    return session.instance.waiting.block(session, wanted.keys, block_ms, attempt, queues=queue)


def _group_waited_for(record: object, name: bytes | None) -> Group:
    if not isinstance(record, Topic):
        raise CommandError(_KEY_GONE)
    assert name is not None
    group = record.group(name)
    if group is None:
        raise CommandError(_GROUP_GONE)
    return group


@command(
    "xack",
    arity=-4,
    flags="write fast",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Marks a pending message as correctly processed, effectively removing it from the pending entries list of "
    "the consumer group. Return value of the command is the number of messages successfully acknowledged, that is, the "
    "IDs we were actually able to resolve in the PEL.",
    complexity="O(1) for each message ID processed.",
    arguments=(Arg("key", "key", key_spec=0), Arg("group"), Arg("ID", multiple=True)),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
)
def xack(session: CommandSession, args: list[bytes]) -> Reply:
    group = find_group(session, args[1], args[2])
    if group is None:
        return 0
    packed_ids = packed(args[3:])
    if not group.pending_count:
        return 0
    if not group.topic.keyspace.turn.writes:
        group = latest(session, args[1], group)
    return 0 if group is None else pending.acknowledge(group, packed_ids)


def packed(ids: list[bytes]) -> bytes:
    """Ids, packed. Those that are two plain numbers each, as most are, are read all at once. Raises CommandError."""
    joined = b",".join(ids)
    if joined.translate(None, _DIGITS) == _dashes(len(ids)) and _LONG_ZEROS not in joined:
        numbers = joined.replace(b",", b"-").split(b"-")
        try:
            return Struct(f">{len(numbers)}Q").pack(*map(int, numbers))
        except (ValueError, OutOfRange):  # half an id, or more than 64 bits
            pass
    return b"".join([entry_ids.pack(strict_id(text)) for text in ids])


def _dashes(count: int) -> bytes:
    return b"-," * (count - 1) + b"-"
