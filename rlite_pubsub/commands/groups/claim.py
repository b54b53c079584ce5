"""XCLAIM and XAUTOCLAIM: pending entries change hands, chosen by their ids or by how long they have been idle."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import NamedTuple

from rlite_pubsub.engine.arguments.group_lookup import consumer_of, find_group, latest, no_group
from rlite_pubsub.engine.arguments.integers import LONG_MAX, integer
from rlite_pubsub.engine.arguments.lookup import find, find_topic
from rlite_pubsub.engine.arguments.stream_ids import range_start, strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.groups import claims
from rlite_pubsub.groups.consumer import Consumer
from rlite_pubsub.groups.group import Group, group_of
from rlite_pubsub.groups.pending import Amendment
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import SYNTAX, WRONG_TYPE, CommandError, c_string
from rlite_pubsub.protocol.replies import Encoded, Reply
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

_BAD_IDLE = b"ERR Invalid min-idle-time argument for %b"
_BAD_OPTION = b"ERR Invalid %b option argument for XCLAIM"
_UNKNOWN_OPTION = b"ERR Unrecognized XCLAIM option '%b'"
_BAD_COUNT = b"ERR COUNT must be > 0"
_TOO_MUCH = b"ERR Insufficient memory, failed allocating transient memory, COUNT too high."
_MAX_COUNT = LONG_MAX // 16
_MAX_AT_ONCE = 1 << 36
"""Redis reserves 16 bytes for each that COUNT allows, and refuses where there is not so much."""
_USUAL_COUNT = 100
_ATTEMPTS_PER_ENTRY = 10

_ARGUMENTS = (Arg("key", "key", key_spec=0), Arg("group"), Arg("consumer"), Arg("min-idle-time"))


class _Claim(NamedTuple):
    """The arguments of XCLAIM."""

    ids: list[Id]
    idle_ms: int
    delivered_ms: int
    deliveries: int | None
    """None: one more than before, or (JUSTID) as many."""
    force: bool
    just_id: bool
    last_id: Id


@command(
    "xclaim",
    arity=-6,
    flags="write fast",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Changes (or acquires) ownership of a message in a consumer group, as if the message was delivered to the "
    "specified consumer.",
    complexity="O(log N) with N being the number of messages in the PEL of the consumer group.",
    arguments=(
        *_ARGUMENTS,
        Arg("ID", multiple=True),
        Arg("ms", "integer", token="IDLE", optional=True),
        Arg("unix-time-milliseconds", "unix-time", token="TIME", optional=True),
        Arg("count", "integer", token="RETRYCOUNT", optional=True),
        Arg("force", "pure-token", token="FORCE", optional=True),
        Arg("justid", "pure-token", token="JUSTID", optional=True),
        Arg("id", token="LASTID", optional=True),
    ),
    key_specs=(KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
)
def xclaim(session: CommandSession, args: list[bytes]) -> Reply:
    group = find_group(session, args[1], args[2])
    if group is None:
        raise no_group(args[1], args[2])
    claim = _claim(args, group.topic.keyspace.clock_ms())
    group = _latest(session, args, group)
    if claim.last_id > group.last_id:
        group.move(claim.last_id, group.entries_read)
    return _claimed(session, group, args[3], claim)


@reads_ahead(b"xclaim")
def _read_ahead_of_claim(session: CommandSession, args: list[bytes], places: Places) -> None:
    topic = find_topic(session, args[1])
    if topic is None or not topic.has_cold:
        return
    claim = _claim(args, topic.keyspace.clock_ms())
    topic.entries(sorted(set(map(entry_ids.pack, claim.ids))))
    place = session.db, args[1], args[2]
    group = group_of(topic, args[2])
    if place in places or group is not None:
        places[place] = max(places[place] if group is None else places.get(place, group.last_id), claim.last_id)


def _claim(args: list[bytes], now_ms: int) -> _Claim:
    idle_ms = max(integer(args[4], refusal=_BAD_IDLE % b"XCLAIM"), 0)
    ids: list[Id] = []
    with suppress(CommandError):  # the options begin where there is no id; those before it are in the list
        ids.extend(map(strict_id, args[5:]))
    place = 5 + len(ids)
    delivered_ms, deliveries, force, just_id, last_id = now_ms, -1, False, False, entry_ids.MIN
    while place < len(args):
        word = args[place].upper()
        has_more = place + 1 < len(args)
        if word == b"FORCE":
            force = True
        elif word == b"JUSTID":
            just_id = True
        elif word in (b"IDLE", b"TIME", b"RETRYCOUNT") and has_more:
            place += 1
            number = integer(args[place], refusal=_BAD_OPTION % word)
            if word == b"RETRYCOUNT":
                deliveries = number
            else:
                delivered_ms = number if word == b"TIME" else now_ms - number
        elif word == b"LASTID" and has_more:
            place += 1
            last_id = strict_id(args[place])
        else:
            raise CommandError(_UNKNOWN_OPTION % c_string(args[place]))
        place += 1
    if not 0 <= delivered_ms <= now_ms:  # computed by a clock that is not ours
        delivered_ms = now_ms
    return _Claim(ids, idle_ms, delivered_ms, deliveries if deliveries >= 0 else None, force, just_id, last_id)


def _claimed(session: CommandSession, group: Group, name: bytes, claim: _Claim) -> Reply:
    topic = group.topic
    now_ms = topic.keyspace.clock_ms()
    amendment = Amendment(group)
    consumer: Consumer | None = None
    replies: list[Reply] = []
    ids: list[bytes] = []
    if group.pending_count or claim.force:
        ids = [entry_ids.pack(entry_id) for entry_id in claim.ids]
    if not claim.force:  # the entries of others need not be read
        ids = [packed for packed in ids if amendment.fate(packed) is not None]
    ordered = sorted(set(ids))
    rehearse(session, topic, lambda: topic.entries(ordered))
    entries = dict(zip(ordered, topic.entries(ordered), strict=True))
    for packed in ids:
        fate = amendment.fate(packed)
        if fate is None and not claim.force:
            continue
        entry = entries[packed]
        if entry is None:
            amendment.remove(packed)
            continue
        if fate is not None and claim.idle_ms and now_ms - fate[1] < claim.idle_ms:
            continue
        if consumer is None:
            consumer = consumer_of(session, group, name)
        before = 1 if fate is None else fate[2]
        deliveries = before + (not claim.just_id) if claim.deliveries is None else claim.deliveries
        amendment.put(packed, (consumer.number, claim.delivered_ms, deliveries))
        replies.append(_text(packed) if claim.just_id else Encoded(entry))
    amendment.close()
    return replies


@command(
    "xautoclaim",
    arity=-6,
    flags="write fast",
    group="stream",
    since="6.2.0",
    categories="stream",
    summary="Changes (or acquires) ownership of messages in a consumer group, as if the messages were delivered to the "
    "specified consumer.",
    complexity="O(1) if COUNT is small.",
    arguments=(
        *_ARGUMENTS,
        Arg("start"),
        Arg("count", "integer", token="COUNT", optional=True),
        Arg("justid", "pure-token", token="JUSTID", optional=True),
    ),
    key_specs=(KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),),
    tips=("nondeterministic_output",),
    history=(
        (
            "7.0.0",
            "Added an element to the reply array, containing deleted entries the command cleared from the PEL",
        ),
    ),
)
def xautoclaim(session: CommandSession, args: list[bytes]) -> Reply:
    """The id to go on from, what was claimed, and the ids of what is gone and was pending."""
    record = find(session, args[1])  # first: a missing key is reported before anything else that is wrong
    idle_ms = max(integer(args[4], refusal=_BAD_IDLE % b"XAUTOCLAIM"), 0)
    start = range_start(args[5])
    count, just_id = _autoclaim_options(args)
    if record is not None and not isinstance(record, Topic):
        raise CommandError(WRONG_TYPE)
    group = None if record is None else group_of(record, args[2])
    if group is None:
        raise no_group(args[1], args[2])
    if count > _MAX_AT_ONCE:
        raise CommandError(_TOO_MUCH)
    group = _latest(session, args, group)
    now_ms = group.topic.keyspace.clock_ms()
    look = partial(claims.idle_from, group, start, idle_ms, count, count * _ATTEMPTS_PER_ENTRY, now_ms)
    rehearse(session, group.topic, look)
    found = look()
    if found.deleted:
        claims.forget(group, found.deleted)
    if found.claimed:
        consumer = consumer_of(session, group, args[3])
        claims.take_over(group, consumer, found.claimed, now_ms, counts=not just_id)
    if just_id:
        claimed: list[Reply] = [_text(item.id) for item in found.claimed]
    else:
        claimed = [Encoded(item.entry) for item in found.claimed if item.entry is not None]
    return [entry_ids.text(found.next_id), claimed, [_text(packed) for packed in found.deleted]]


@reads_ahead(b"xautoclaim")
def _read_ahead_of_autoclaim(session: CommandSession, args: list[bytes], places: Places) -> None:
    topic = find_topic(session, args[1])
    group = group_of(topic, args[2]) if topic is not None and topic.has_cold else None
    if group is not None:
        idle_ms, (count, _) = max(integer(args[4]), 0), _autoclaim_options(args)
        attempts = count * _ATTEMPTS_PER_ENTRY
        claims.idle_from(group, range_start(args[5]), idle_ms, count, attempts, group.topic.keyspace.clock_ms())


def _autoclaim_options(args: list[bytes]) -> tuple[int, bool]:
    count, just_id = _USUAL_COUNT, False
    place = 6
    while place < len(args):
        word = args[place].upper()
        if word == b"COUNT" and place + 1 < len(args):
            place += 1
            count = integer(args[place], 1, _MAX_COUNT, _BAD_COUNT)
        elif word == b"JUSTID":
            just_id = True
        else:
            raise CommandError(SYNTAX)
        place += 1
    return count, just_id


def _latest(session: CommandSession, args: list[bytes], group: Group) -> Group:
    found = latest(session, args[1], group)
    if found is None:
        raise no_group(args[1], args[2])
    return found


def _text(packed: bytes) -> bytes:
    return entry_ids.text(entry_ids.unpack(packed))
