"""TOPIC.GROUP, TOPIC.REQUEUE: groups as work queues. An extension.

How long an entry may be in flight, how often it may be delivered, what becomes of it then, and whether retention waits
for the group. What follows from it is groups/flights.py's and its neighbours'.
"""

from __future__ import annotations

from functools import partial

from rlite_pubsub.engine.arguments.group_lookup import find_group, latest, no_group
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find_topic
from rlite_pubsub.engine.arguments.stream_ids import strict_id
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.shards.restrictions import check_together
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.waits.cold_wait import Places, reads_ahead, rehearse
from rlite_pubsub.groups import dead_letters, flights, release
from rlite_pubsub.groups.group import Group, group_of
from rlite_pubsub.groups.pending import Amendment
from rlite_pubsub.groups.release import MAX_MS
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import OK, Reply
from rlite_pubsub.storage.groups.released import Released
from rlite_pubsub.storage.topics import entry_ids

SINCE = "0.2.0"
_MAX_DELIVERIES = 1 << 32
_BAD_TIMEOUT = b"ERR TIMEOUT must be a number of milliseconds up to 2^48, or 0"
_BAD_DELIVERIES = b"ERR MAXDELIVERIES must be a number up to 2^32, or 0"
_BAD_HOLD = b"ERR HOLD must be yes or no"
_BAD_DELAY = b"ERR DELAY must be a number of milliseconds up to 2^48"
_OWN_GRAVE = b"ERR a topic can't take its own dead letters"
_ANSWERS = {b"YES": True, b"NO": False}
_UPDATE = (KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),)
_NAME = Arg("name", "key", key_spec=0)


@command(
    "topic.group",
    arity=-3,
    flags="write denyoom",
    group="stream",
    since=SINCE,
    summary="Show or set how a group works as a work queue",
    complexity="O(1), O(N) where N is the number of its pending entries when it gets a timeout and had none",
    arguments=(
        _NAME,
        Arg("group"),
        Arg("milliseconds", "integer", token="TIMEOUT", optional=True),
        Arg("count", "integer", token="MAXDELIVERIES", optional=True),
        Arg("topic", "string", token="DEADLETTER", optional=True),
        Arg(
            "hold",
            "oneof",
            token="HOLD",
            optional=True,
            arguments=(Arg("yes", "pure-token", token="yes"), Arg("no", "pure-token", token="no")),
        ),
    ),
    key_specs=_UPDATE,
    ours=True,
)
def topic_group(session: CommandSession, args: list[bytes]) -> Reply:
    """Without options answer a map; with options change the settings they name."""
    said = _said(args[3:])
    group = find_group(session, args[1], args[2])
    if group is None:
        raise no_group(args[1], args[2])
    if not said:
        return view(group)
    if said.get("dead_letter") == args[1]:
        raise CommandError(_OWN_GRAVE)
    for option, value in zip(args[3::2], args[4::2], strict=True):
        if option.upper() == b"DEADLETTER" and value:
            check_together(session, args[1], value, b"the topic for dead letters")
    group = latest(session, args[1], group)
    if group is None:
        raise no_group(args[1], args[2])
    before = group.settings
    group.change(**said)
    if group.settings.timeout_ms != before.timeout_ms:
        if not before.timeout_ms:
            flights.note_all(group)
        elif not group.settings.timeout_ms:
            flights.forget_all(group)
        flights.reckon(group)
    return OK


def _said(words: list[bytes]) -> dict[str, object]:
    if len(words) % 2:
        raise CommandError(SYNTAX)
    said: dict[str, object] = {}
    for word, value in zip(words[::2], words[1::2], strict=True):
        option = word.upper()
        if option == b"TIMEOUT":
            name, found = "timeout_ms", integer(value, 0, MAX_MS, _BAD_TIMEOUT)
        elif option == b"MAXDELIVERIES":
            name, found = "max_deliveries", integer(value, 0, _MAX_DELIVERIES, _BAD_DELIVERIES)
        elif option == b"DEADLETTER":
            said["dead_letter"] = value
            continue
        elif option == b"HOLD":
            if value.upper() not in _ANSWERS:
                raise CommandError(_BAD_HOLD)
            name, found = "holds", _ANSWERS[value.upper()]
        else:
            raise CommandError(SYNTAX)
        said[name] = found
    return said


def view(group: Group) -> dict[Reply, Reply]:
    """`lag` counts the entries that the group has not been given yet, `released` those that it gave back and will
    be given again soon, and `delayed` those for which that has to wait."""
    settings = group.settings
    delayed = release.delayed_count(group)
    return {
        b"name": group.name,
        b"lag": group.lag,
        b"pending": group.pending_count,
        b"released": settings.released - delayed,
        b"delayed": delayed,
        b"requeued": settings.requeued,
        b"timed-out": settings.timed_out,
        b"dead-lettered": settings.dead_lettered,
        b"dropped": settings.dropped,
        b"paused": int(settings.is_paused),
        b"asleep": int(settings.is_asleep),
        b"consumers": group.consumer_count,
        b"last-delivered-id": entry_ids.text(group.last_id),
        b"timeout": settings.timeout_ms,
        b"max-deliveries": settings.max_deliveries,
        b"dead-letter": settings.dead_letter,
        b"hold": int(settings.holds),
    }


@command(
    "topic.requeue",
    arity=-4,
    flags="write denyoom fast",
    group="stream",
    since=SINCE,
    summary="Return a pending entry to its group, to be delivered again at once or after a delay",
    complexity="O(log N) where N is the number of pending entries",
    arguments=(_NAME, Arg("group"), Arg("id"), Arg("milliseconds", "integer", token="DELAY", optional=True)),
    key_specs=_UPDATE,
    ours=True,
)
def topic_requeue(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if it is not in flight."""
    packed, delay_ms = entry_ids.pack(strict_id(args[3])), _delay_ms(args[4:])
    group = find_group(session, args[1], args[2])
    if group is None:
        raise no_group(args[1], args[2])
    if not group.pending_count:
        return 0
    group = latest(session, args[1], group)
    if group is None:
        raise no_group(args[1], args[2])
    amendment = Amendment(group)
    fate = amendment.fate(packed)
    if fate is None:
        return 0
    rehearse(session, group.topic, partial(dead_letters.look_at, group, [(packed, fate[2])]))
    amendment.remove(packed)
    amendment.close()
    due_ms = group.topic.keyspace.clock_ms() + delay_ms if delay_ms else release.AT_ONCE
    group.change(requeued=group.settings.requeued + 1)
    release.release(group, [Released(packed, due_ms, fate[2], fate[1])])
    if delay_ms:
        flights.bring_forward(group, due_ms)
    return 1


@reads_ahead(b"topic.requeue")
def _read_ahead(session: CommandSession, args: list[bytes], places: Places) -> None:
    topic = find_topic(session, args[1])
    group = group_of(topic, args[2]) if topic is not None and topic.has_cold else None
    if group is not None:  # to bury it, or to deliver it again
        group.topic.entries([entry_ids.pack(strict_id(args[3]))])


def _delay_ms(words: list[bytes]) -> int:
    if not words:
        return 0
    if len(words) != 2 or words[0].upper() != b"DELAY":
        raise CommandError(SYNTAX)
    return integer(words[1], 0, MAX_MS, _BAD_DELAY)
