"""TOPIC.*: topics as such, what is kept of them, and what is known of them. Not Redis's: ours.

A topic is a stream's key. To empty it and to delete it are different commands, and neither is to be done with it.
"""

from __future__ import annotations

from rlite_pubsub.commands.topics.group import view as group_view
from rlite_pubsub.engine.access.permission import readable
from rlite_pubsub.engine.arguments.help import usage
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of, topic_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.engine.topics.limits import ARGUMENTS, TopicWords, limits_of, retention_of, take_words, tell, words_of
from rlite_pubsub.groups.emptying import empty
from rlite_pubsub.groups.group import all_groups
from rlite_pubsub.keyspace.topic import deferral
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import NO_SUCH_KEY, SYNTAX, CommandError
from rlite_pubsub.protocol.glob import Glob
from rlite_pubsub.protocol.replies import OK, Reply, Status
from rlite_pubsub.storage.cold.cold_blocks import ColdState
from rlite_pubsub.storage.keys.key_records import TOPIC
from rlite_pubsub.storage.topics.entry_ids import text

# -- What TOPIC.INFO tells of a topic.

def view(session: CommandSession, topic: Topic) -> dict[Reply, Reply]:
    """`earliest-id` is what can still be read from; `trimmed-id` is the last entry that is gone from before it, by
    retention or by XTRIM and its kin."""
    settings = retention_of(topic).settings(topic)
    cold = topic.cold.state if topic.has_cold else ColdState()
    return {
        b"name": topic.name,
        b"length": topic.length,
        b"bytes": topic.size_bytes,
        b"earliest-id": text(topic.first_id),
        b"last-id": text(topic.last_id),
        b"entries-added": topic.entries_added,
        b"max-deleted-id": text(topic.max_deleted_id),
        b"groups": topic.group_count,
        b"group-list": [group_view(group) for group in all_groups(topic)],
        b"ephemeral": int(topic.keyspace is not session.engine.keyspace.stored),
        b"paused": int(topic.is_paused),
        b"deferred": deferral.count(topic),
        **limits_of(topic),
        b"removed-entries": settings.removed_entries if settings is not None else 0,
        b"removed-bytes": settings.removed_bytes if settings is not None else 0,
        b"trimmed-entries": topic.trimmed,
        b"trimmed-id": text(topic.trimmed_id),
        b"cold-entries": cold.live,
        b"cold-bytes": cold.live_bytes,
        b"sealed-to": text(cold.sealed_to),
    }


SINCE = "0.2.0"
_READ = (KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),)
_INSERT = (KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),)
_UPDATE = (KeySpec(("RW", "UPDATE"), ("index", 1), ("range", 0, 1, 0)),)
_REMOVE = (KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),)
_EXPLAINED = (b"topic.create", b"topic.config")
_NAME = Arg("name", "key", key_spec=0)


@command(
    "topic.create",
    arity=-2,
    flags="write denyoom fast",
    group="stream",
    since=SINCE,
    summary="Create an empty topic, optionally with its own retention and limits",
    complexity="O(1)",
    arguments=(_NAME, *ARGUMENTS),
    key_specs=_INSERT,
    ours=True,
)
def topic_create(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1 if it was made, 0 if it exists already; then nothing about it changes."""
    told = take_words(args[2:], TopicWords())
    if topic_for_change(session, args[1]) is not None:
        return 0
    topic = keyspace_of(session).create_topic(session.db, args[1])
    tell(topic, told)
    return 1


@command(
    "topic.config",
    arity=-3,
    flags="write fast",
    group="stream",
    since=SINCE,
    summary="Show or change the retention and the limits of a topic",
    complexity="O(1)",
    arguments=(
        _NAME,
        Arg(
            "action",
            "oneof",
            arguments=(
                Arg("get", "pure-token", token="GET"),
                Arg("set", "block", token="SET", arguments=ARGUMENTS),
            ),
        ),
    ),
    key_specs=_UPDATE,
    ours=True,
)
def topic_config(session: CommandSession, args: list[bytes]) -> Reply:
    """GET shows what is in force, wherever it was set. SET changes what it names: to a limit, to `none`, or to
    `default`,
    which is what the rules say."""
    action = args[2].upper()
    if action == b"GET" and len(args) == 3:
        topic = find_topic(session, args[1])
        if topic is None:
            raise CommandError(NO_SUCH_KEY)
        return limits_of(topic)
    if action != b"SET" or len(args) == 3:
        raise CommandError(SYNTAX)
    take_words(args[3:], TopicWords())  # refused before anything is changed
    topic = topic_for_change(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    tell(topic, take_words(args[3:], words_of(topic)))
    return OK


@command(
    "topic.list",
    arity=-1,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="List the topics of the database",
    complexity="O(N) where N is the number of keys of the database",
    arguments=(Arg("pattern", "pattern", token="MATCH", optional=True),),
    ours=True,
)
def topic_list(session: CommandSession, args: list[bytes]) -> Reply:
    """Of the database's topics, those that the user may read."""
    if len(args) not in (1, 3) or (len(args) == 3 and args[1].upper() != b"MATCH"):
        raise CommandError(SYNTAX)
    names = [name for name, type_ in keyspace_of(session).databases.walk(session.db) if type_ == TOPIC]
    if len(args) == 3:
        pattern = Glob(args[2])
        names = [name for name in names if pattern.matches(name)]
    return sorted(readable(session.limits, names))


@command(
    "topic.info",
    arity=2,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="Show a topic: its entries, groups and retention, and what retention has removed",
    complexity="O(1)",
    arguments=(_NAME,),
    key_specs=_READ,
    ours=True,
)
def topic_info(session: CommandSession, args: list[bytes]) -> Reply:
    topic = find_topic(session, args[1])
    if topic is None:
        raise CommandError(NO_SUCH_KEY)
    return view(session, topic)


@command(
    "topic.empty",
    arity=2,
    flags="write",
    group="stream",
    since=SINCE,
    summary="Remove all entries of a topic, deferred and pending ones too; its groups and settings stay",
    complexity="O(N) where N is the number of entries, up to a few thousand, and of groups and their consumers",
    arguments=(_NAME,),
    key_specs=_REMOVE,
    ours=True,
)
def topic_empty(session: CommandSession, args: list[bytes]) -> Reply:
    """Remove all entries; answer how many there were."""
    topic = topic_for_change(session, args[1])
    if topic is None:
        return 0
    removed = empty(topic)
    if removed:
        session.engine.notifications.tell("t", b"xtrim", session.db, args[1])
    return removed


@command(
    "topic.delete",
    arity=2,
    flags="write",
    group="stream",
    since=SINCE,
    summary="Remove a topic, with its entries, groups and settings",
    complexity="O(1)",
    arguments=(_NAME,),
    key_specs=_REMOVE,
    ours=True,
)
def topic_delete(session: CommandSession, args: list[bytes]) -> Reply:
    """Like DEL, but for topics only: answer 1, or 0 if it did not exist."""
    topic = topic_for_change(session, args[1])
    if topic is None:
        return 0
    keyspace_of(session).remove(topic)
    session.engine.notifications.tell("g", b"del", session.db, args[1])
    return 1


@command(
    "topic.help",
    arity=1,
    flags="loading stale",
    group="stream",
    since=SINCE,
    summary="Show helpful text about the TOPIC commands",
    complexity="O(1)",
    ours=True,
)
def topic_help(session: CommandSession, args: list[bytes]) -> Reply:
    lines = [
        "TOPIC.CREATE <name> [<limit> ...]",
        "    Create an empty topic. A <limit> is one of:",
        "      RETAIN-AGE <age>       7d, 24h, 90min, 30s, 500ms, or a number of milliseconds",
        "      RETAIN-LENGTH <count>  of entries",
        "      RETAIN-BYTES <size>    512mb, 1gb, or a number of bytes",
        "      MAX-ENTRY-BYTES <size> of fields and values together; a larger entry is refused",
        "      SYNC-EVERY <count>     one append in <count> is answered only when it is on the disk",
        "      SEGMENT-LENGTH <count> of a queue in a sharded store: a new segment begins after so many entries",
        "      SEGMENT-BYTES <size>   or after so many bytes of them",
        "    `none` means no limit, `default` means as the rules say (CONFIG GET retain).",
        "TOPIC.CONFIG <name> GET",
        "    Show the retention and the limits of a topic.",
        "TOPIC.CONFIG <name> SET <limit> [<limit> ...]",
        "    Change it.",
    ]
    return [Status(line.encode()) for line in lines] + usage(b"topic.", _EXPLAINED)
