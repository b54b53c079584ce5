"""XINFO: what is known of a topic, its groups and their consumers. Records tell it; nothing is walked for it."""

from __future__ import annotations

from itertools import islice

from rlite_pubsub.commands.streams.range import array
from rlite_pubsub.engine.arguments.group_lookup import no_group_of_key
from rlite_pubsub.engine.arguments.help import helps
from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.engine.arguments.lookup import find_topic
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command, container
from rlite_pubsub.groups import claims
from rlite_pubsub.groups.group import Group, all_groups, group_of
from rlite_pubsub.keyspace.topic import idempotence
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CommandError, subcommand_syntax
from rlite_pubsub.protocol.replies import Encoded, Reply
from rlite_pubsub.storage.topics import entry_ids


def _as_long(count: int | None) -> int | None:
    """Return a count of 64 bits as Redis prints it: as if it had a sign."""
    return None if count is None else (count + _HALF) % (2 * _HALF) - _HALF


_HALF = 1 << 63

# -- XINFO GROUPS and XINFO CONSUMERS: what the records of groups and consumers have; nothing is walked for it. And what
# XINFO STREAM FULL shows of groups.

_NO_KEY_OF_GROUPS = b"ERR no such key"
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
        b"entries-read": _as_long(group.entries_read),
        b"lag": _as_long(group.lag),
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
    group = group_of(topic, args[3])
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
            b"entries-read": _as_long(group.entries_read),
            b"lag": _as_long(group.lag),
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
        raise CommandError(_NO_KEY_OF_GROUPS)
    return topic


_NO_SUCH_KEY = b"ERR no such key"
_DEFAULT_COUNT = 10
_COUNTED_NODES = 16

container(
    "xinfo",
    arity=-2,
    group="stream",
    since="5.0.0",
    summary="A container for stream introspection commands",
    complexity="Depends on subcommand.",
)


@command(
    "xinfo|stream",
    arity=-3,
    flags="readonly",
    group="stream",
    since="5.0.0",
    categories="stream",
    summary="Get information about a stream",
    complexity="O(1)",
    arguments=(
        Arg("key", "key", key_spec=0),
        Arg(
            "full",
            "block",
            token="FULL",
            optional=True,
            arguments=(Arg("count", "integer", token="COUNT", optional=True),),
        ),
    ),
    key_specs=(
        KeySpec(
            (
                "RO",
                "ACCESS",
            ),
            ("index", 2),
            ("range", 0, 1, 0),
        ),
    ),
    history=(
        ("6.0.0", "Added the `FULL` modifier."),
        (
            "7.0.0",
            "Added the `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, `entries-read` and "
            "`lag` fields",
        ),
    ),
)
def xinfo_stream(session: CommandSession, args: list[bytes]) -> Reply:
    topic = find_topic(session, args[2])
    if topic is None:
        raise CommandError(_NO_SUCH_KEY)
    count = _full_count(args)
    keys = _node_count(topic)
    about: dict[Reply, Reply] = {
        b"length": topic.length,
        b"radix-tree-keys": keys,
        b"radix-tree-nodes": keys + 1,
        b"last-generated-id": entry_ids.text(topic.last_id),
        b"max-deleted-entry-id": entry_ids.text(topic.max_deleted_id),
        b"entries-added": _as_long(topic.entries_added),
        b"recorded-first-entry-id": entry_ids.text(topic.first_id),
    }
    publications = idempotence.told(topic)
    if publications is not None:  # 7.0.15 knows nothing of it
        about[b"idmp-duration"] = publications.seconds
        about[b"idmp-maxsize"] = publications.most
        about[b"pids-tracked"] = publications.producers
        about[b"iids-tracked"] = publications.known
        about[b"iids-added"] = publications.added
        about[b"iids-duplicates"] = publications.duplicates
    if count is None:
        first, last = next(topic.between(limit=1), None), next(topic.backward(limit=1), None)
        about[b"groups"] = topic.group_count
        about[b"first-entry"] = None if first is None else Encoded(first.wire)
        about[b"last-entry"] = None if last is None else Encoded(last.wire)
    else:
        about[b"entries"] = array(topic.between(limit=count or None))
        about[b"groups"] = groups_in_full(topic, count)
    return about


def _full_count(args: list[bytes]) -> int | None:
    """Return how many entries FULL shows of each list, 0 being all; None without it. Raises CommandError."""
    options = args[3:]
    if not options:
        return None
    if len(options) not in (1, 3) or options[0].upper() != b"FULL":
        raise subcommand_syntax(args)
    if len(options) == 1:
        return _DEFAULT_COUNT
    if options[1].upper() != b"COUNT":
        raise subcommand_syntax(args)
    count = integer(options[2])
    return _DEFAULT_COUNT if count < 0 else count


def _node_count(topic: Topic) -> int:
    nodes = topic.nodes
    nodes.learn_all(topic.node_limits, _COUNTED_NODES)
    known = len(nodes.known)
    there = sum([node.live for node in nodes.known])
    return known if there >= topic.length or not there else -(-known * topic.length // there)


helps(
    "xinfo",
    "CONSUMERS <key> <groupname>",
    "    Show consumers of <groupname>.",
    "GROUPS <key>",
    "    Show the stream consumer groups.",
    "STREAM <key> [FULL [COUNT <count>]",
    "    Show information about the stream.",
    group="stream",
    since="5.0.0",
    categories="stream",
)
