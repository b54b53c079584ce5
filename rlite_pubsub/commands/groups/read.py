"""XREADGROUP: entries are delivered to the consumers of a group."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlite_pubsub.engine.arguments.group_lookup import consumer_in_time, consumer_of, no_group
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of, topic_for_change
from rlite_pubsub.engine.arguments.stream_arguments import Reading, of_keys, reading
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.groups import chain, claims, dead_letters, landing, pending, release
from rlite_pubsub.groups.claims import Pending
from rlite_pubsub.groups.group import Group, group_of
from rlite_pubsub.groups.pending import Amendment
from rlite_pubsub.groups.progress import look_behind
from rlite_pubsub.groups.release import Again
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CommandError, c_string
from rlite_pubsub.protocol.replies import NULL_ARRAY, Encoded, Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import ChunkSlice
from rlite_pubsub.storage.topics.entry_ids import MAX, MIN, Id

if TYPE_CHECKING:
    from rlite_pubsub.engine.arguments.stream_arguments import Reading
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.groups.consumer import Consumer


# -- What XREADGROUP answers for one key: entries are delivered, or a consumer's own are delivered again. A read of new
# entries copies what the chunks have, and is one more run of pending entries. Before new entries come those that the
# group has given back (groups/release.py).

NEW = MAX
"""What `>` is read as; no entry can follow it, so that it is free to mean this."""
_CLOSED = b"CLOSED The next entries of group '%b' are in a closed segment of the queue, which QUEUE.POP alone reads"
_NEVER_DELIVERED = b":0\r\n:0\r\n"


class GroupRead(NamedTuple):
    """What is read of one key."""

    key: bytes
    group: Group
    start: Id


def may_have_something(target: GroupRead, wanted: Reading) -> bool:
    """Return whether a look, which may need the right to write, is worth while. History always is an answer."""
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
        return release.is_any_due(group, now_ms) or group.due_ms() <= now_ms
    return False


def has_landed(target: GroupRead) -> bool:
    """Return whether a delivered entry has timed out, and must be delivered again."""
    group = target.group
    return target.start == NEW and bool(group.settings.timeout_ms) and group.due_ms() <= _now_ms(group)


def land(target: GroupRead) -> None:
    """Have it released, so that it is known what will be delivered."""
    if has_landed(target):
        landing.land(target.group, _now_ms(target.group))


def _now_ms(group: Group) -> int:
    return group.topic.keyspace.clock_ms()


def delivered(session: CommandSession, target: GroupRead, wanted: Reading, *, even_nothing: bool = False) -> Reply:
    """Deliver what there is for this key, as the array of its entries. None: there is nothing, and nothing was done."""
    group = target.group
    if group.topic.has_segments and target.start == NEW and chain.is_behind(group):
        raise CommandError(_CLOSED % c_string(group.name))
    now_ms = group.topic.keyspace.clock_ms()
    if target.start != NEW:
        consumer = consumer_of(session, group, wanted.consumer)
        following = entry_ids.after(target.start)
        assert following is not None
        history = claims.deliver_again(group, consumer, following, wanted.count, now_ms)
        return [_of_history(item) for item in history]
    idle_ms, count = wanted.claim_idle_ms, wanted.count
    settings = group.settings
    if settings.timeout_ms and group.due_ms() <= now_ms and not group.topic.has_cold:  # see `ahead`
        landing.land(group, now_ms)
    claimed = [] if idle_ms is None else _claimed(group, idle_ms, count, now_ms)
    again: list[Again] = []
    if group.settings.released and (not count or len(claimed) < count):
        again = release.take(group, count - len(claimed) if count else None, now_ms)
    known = len(claimed) + len(again)
    parts: list[ChunkSlice] = []
    if not count or known < count:
        parts = _following(group.topic, group.last_id, count - known if count else None)
    if not parts and not known and not even_nothing:
        return None
    consumer = consumer_of(session, group, wanted.consumer)
    if claimed:
        claims.take_over(group, consumer, claimed, now_ms, counts=True)
    if again and not wanted.no_ack:
        _deliver_again(group, consumer, again, now_ms)
    ids = b"".join([part.ids for part in parts])
    if ids:
        group.advance(ids)
        if not wanted.no_ack:
            pending.deliver(group, consumer, ids, now_ms)
    if idle_ms is not None:
        return Encoded(_with_deliveries(claimed, again, parts, now_ms))
    wire = b"".join([one.entry for one in again] + [part.wire for part in parts])
    return Encoded(b"*%d\r\n%b" % (len(again) + len(ids) // entry_ids.BYTES, wire))


def ahead(target: GroupRead, wanted: Reading) -> Id:
    """Read what `delivered` will read, as far as that can be known before; where the group will be then. What is over
    its time is released."""
    group = target.group
    topic = group.topic
    if target.start == NEW:
        land(target)
        known = release.next_ids(group, wanted.count or None) if group.settings.released else []
        topic.entries(known)
        if wanted.claim_idle_ms is not None:
            claims.most_idle(group, wanted.claim_idle_ms, wanted.count, topic.keyspace.clock_ms())
        if not group.is_stopped and not 0 < wanted.count <= len(known):
            count = wanted.count - len(known) if wanted.count else None
            return look_behind(topic, group.last_id, group.entries_read, count)
    else:
        consumer = group.consumer(wanted.consumer)
        following = entry_ids.after(target.start)
        if consumer is not None and following is not None:
            own = claims.of_consumer(group, consumer, following)
            topic.entries([packed for packed, _ in islice(own, wanted.count or None)])
    return group.last_id


@reads_ahead(b"xreadgroup")
def _read_ahead(session: CommandSession, args: list[bytes], places: Places) -> None:
    wanted = reading(args, by_group=True)
    assert wanted.group is not None
    for key, text in zip(wanted.keys, wanted.ids, strict=True):
        topic = find_topic(session, key)
        if topic is None or not topic.has_cold:
            continue
        place, group = (session.db, key, wanted.group), group_of(topic, wanted.group)
        is_new = text == b">"
        if is_new and place in places:
            places[place] = look_behind(topic, places[place], None, wanted.count or None)
        elif group is not None:
            target = GroupRead(key, group, NEW if is_new else strict_id(text))
            if has_landed(target):
                topic = topic_for_change(session, key)
                group = group_of(topic, wanted.group) if topic is not None else None
                if group is None:
                    continue
                target = target._replace(group=group)
            is_at = ahead(target, wanted)
            if is_new:
                places[place] = is_at


def _following(topic: Topic, after: Id, count: int | None) -> list[ChunkSlice]:
    """Return the entries behind this one."""
    start = entry_ids.after(after)
    return [] if start is None else list(topic.between(start, limit=count))


def _claimed(group: Group, idle_ms: int, count: int, now_ms: int) -> list[Pending]:
    """Return what CLAIM gives: entries delivered too often leave the group instead."""
    found = claims.most_idle(group, idle_ms, count, now_ms)
    spent = [one for one in found if dead_letters.is_spent(group, one.fate[2])]
    if not spent:
        return found
    claims.forget(group, [one.id for one in spent])
    dead_letters.bury(group, [dead_letters.Spent(one.id, one.fate[2], one.fate[1]) for one in spent])
    return [one for one in found if one not in spent]


def _deliver_again(group: Group, consumer: Consumer, again: list[Again], now_ms: int) -> None:
    amendment = Amendment(group)
    for one in again:
        amendment.put(one.id, (consumer.number, now_ms, one.deliveries + 1))
    amendment.close()


def _with_deliveries(claimed: list[Pending], again: list[Again], parts: list[ChunkSlice], now_ms: int) -> bytes:
    """Return the entries of CLAIM with how long each was idle, and how often it had been delivered."""
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


# -- Sessions that wait in XREADGROUP: for new entries and, with CLAIM, for pending ones to be idle for long enough. Who
# waits for new entries of one group stands in one queue: where there is nothing for the first, there is nothing for
# those behind. Who claims stands alone, because what is idle enough for one is not for another.

_KEY_GONE = b"UNBLOCKED the stream key no longer exists"
_GROUP_GONE = b"NOGROUP the consumer group this client was blocked on no longer exists"
_USUAL_COUNT = 1000
"""A client that has waited without a COUNT gets no more at once."""


def wait(session: CommandSession, wanted: Reading, block_ms: int) -> Reply:
    """Wait for what `wanted` asks for: new entries, all of it."""
    if not wanted.count:
        wanted = wanted._replace(count=_USUAL_COUNT)
    keyspace = keyspace_of(session)
    topics = {key: waited_for(keyspace.find(session.db, key), wanted.group).topic for key in wanted.keys}
    last_ids = {(key, topic.number): topic.last_id for key, topic in topics.items()}

    cold_waits = session.engine.cold_waits

    def attempt(key: bytes) -> Reply:
        """Answer with what there is by now. If something came and is gone again, the answer is that there is
        nothing."""
        group = waited_for(keyspace.find(session.db, key), wanted.group)
        if not may_have_something(GroupRead(key, group, NEW), wanted):
            return None
        if not keyspace.turn.writes:
            group = waited_for(keyspace.for_change(session.db, key), wanted.group)
        target = GroupRead(key, group, NEW)
        if group.topic.has_cold and not cold_waits.try_ahead(session, group.topic, partial(ahead, target, wanted)):
            return None
        known = max(group.last_id, last_ids.get((key, group.topic.number), MIN))
        has_come = group.topic.last_id > known and (session.db, key) in keyspace.touched  # by what happens just now
        reply = delivered(session, target, wanted, even_nothing=has_come)
        return None if reply is None else of_keys(session, [(key, reply)])

    idle_ms = wanted.claim_idle_ms
    queues = [(b"group", wanted.group)] * len(wanted.keys) if idle_ms is None else None
    reply = session.engine.waiting.block(session, wanted.keys, block_ms, attempt, queues=queues)
    if idle_ms is not None and session.blocked is not None:
        session.engine.idle_claims.add(session, wanted.keys, wanted.group or b"", idle_ms)
    return reply


def waited_for(record: object, name: bytes | None) -> Group:
    """Return the group that somebody waits for. Raises CommandError if it is gone."""
    if not isinstance(record, Topic):
        raise CommandError(_KEY_GONE)
    assert name is not None
    group = group_of(record, name)
    if group is None:
        raise CommandError(_GROUP_GONE)
    return group


_NO_DOLLAR = (
    b"ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by "
    b"specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set."
)
_WITH_GROUP = b" in XREADGROUP with GROUP option"


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
    wanted = reading(args, by_group=True, in_script=session.in_script)
    targets = _targets(session, wanted)
    targets = _rehearse(session, targets, wanted)
    joined = session.engine.readership.join(session, [target.group for target in targets], wanted.consumer)
    if joined:
        for group in joined:
            consumer_in_time(session, group, wanted.consumer)
        targets = _targets(session, wanted)  # the latest
    keyspace = targets[0].group.topic.keyspace
    found: list[tuple[bytes, Reply]] = []
    if any(may_have_something(target, wanted) for target in targets):
        if not keyspace.turn.writes:
            keyspace.writing()
            targets = _targets(session, wanted)  # the latest
        for target in targets:
            reply = delivered(session, target, wanted) if may_have_something(target, wanted) else None
            if reply is not None:
                found.append((target.key, reply))
    if found:
        return of_keys(session, found)
    return NULL_ARRAY if wanted.block_ms is None else wait(session, wanted, wanted.block_ms)


def _rehearse(session: CommandSession, targets: list[GroupRead], wanted: Reading) -> list[GroupRead]:
    """Read what will be delivered, where that is in the cold store; the latest targets. Raises ColdMiss."""
    if any(target.group.topic.has_cold and has_landed(target) for target in targets):
        targets[0].group.topic.keyspace.writing()
        targets = _targets(session, wanted)
    for target in targets:
        rehearse(session, target.group.topic, partial(ahead, target, wanted))
    return targets


def _targets(session: CommandSession, wanted: Reading) -> list[GroupRead]:
    name = wanted.group
    assert name is not None
    targets = []
    for key, text in zip(wanted.keys, wanted.ids, strict=True):
        topic = find_topic(session, key)
        group = None if topic is None else group_of(topic, name)
        if group is None:
            raise no_group(key, name, _WITH_GROUP)
        if text == b">":
            start = NEW
        elif text == b"$":
            raise CommandError(_NO_DOLLAR)
        else:
            start = strict_id(text)
        targets.append(GroupRead(key, group, start))
    return targets
