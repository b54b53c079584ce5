"""XINFO GROUPS and XINFO CONSUMERS: what the records of groups and consumers have; nothing is walked for it. And what
XINFO STREAM FULL shows of groups."""

from __future__ import annotations

from itertools import islice

from rlite_pubsub.commands.group_lookup import no_group_of_key
from rlite_pubsub.commands.lookup import find_topic
from rlite_pubsub.commands.session import CommandSession
from rlite_pubsub.commands.table import Arg, KeySpec, command
from rlite_pubsub.delivery import claims
from rlite_pubsub.delivery.group import Group, all_groups
from rlite_pubsub.delivery.topic import Topic
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage import entry_ids

_NO_SUCH_KEY = b"ERR no such key"
_KEY = Arg("key", "key", key_spec=0)
_READS = (KeySpec(("RO", "ACCESS"), ("index", 2), ("range", 0, 1, 0)),)


@command(
    "xinfo|groups",
    arity=3,
    flags="readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="List the consumer groups of a stream",
    complexity="O(1)",
    arguments=(_KEY,),
    key_specs=_READS,
    history=(("7.0.0", "Added the `entries-read` and `lag` fields"),),
)
def xinfo_groups(session: CommandSession, args: list[bytes]) -> Reply:
    return [_shown(group) for group in all_groups(_topic(session, args[2]))]


def _shown(group: Group) -> Reply:
    return {
        b"name": group.name,
        b"consumers": group.consumer_count,
        b"pending": group.pending_count,
        b"last-delivered-id": entry_ids.text(group.last_id),
        b"entries-read": group.entries_read,
        b"lag": group.lag,
    }


@command(
    "xinfo|consumers",
    arity=4,
    flags="readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="List the consumers in a consumer group",
    complexity="O(1)",
    arguments=(_KEY, Arg("groupname")),
    key_specs=_READS,
    tips=("nondeterministic_output",),
)
def xinfo_consumers(session: CommandSession, args: list[bytes]) -> Reply:
    topic = _topic(session, args[2])
    group = topic.group(args[3])
    if group is None:
        raise no_group_of_key(args[2], args[3])
    now_ms = topic.keyspace.clock_ms()
    return [
        {
            b"name": consumer.name,
            b"pending": consumer.pending_count,
            b"idle": max(now_ms - consumer.seen_ms, 0),
        }
        for consumer in group.consumers()
    ]


def groups_in_full(topic: Topic, count: int) -> Reply:
    """The groups of XINFO STREAM FULL, with at most `count` (0: all) of what is pending with each and with each of its
    consumers."""
    limit = count or None
    return [
        {
            b"name": group.name,
            b"last-delivered-id": entry_ids.text(group.last_id),
            b"entries-read": group.entries_read,
            b"lag": group.lag,
            b"pel-count": group.pending_count,
            b"pending": [
                (_text(packed), group.numbered(number).name, delivered_ms, deliveries)
                for packed, (number, delivered_ms, deliveries) in islice(claims.walk(group), limit)
            ],
            b"consumers": [
                {
                    b"name": consumer.name,
                    b"seen-time": consumer.seen_ms,
                    b"pel-count": consumer.pending_count,
                    b"pending": [
                        (_text(packed), delivered_ms, deliveries)
                        for packed, (_, delivered_ms, deliveries) in islice(claims.of_consumer(group, consumer), limit)
                    ],
                }
                for consumer in group.consumers()
            ],
        }
        for group in all_groups(topic)
    ]


def _text(packed: bytes) -> bytes:
    return entry_ids.text(entry_ids.unpack(packed))


def _topic(session: CommandSession, key: bytes) -> Topic:
    topic = find_topic(session, key)
    if topic is None:
        raise CommandError(_NO_SUCH_KEY)
    return topic
