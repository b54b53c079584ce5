"""QUEUE.CREATE, LIST, PUSH, DELETE, HELP: queues with their whole history. An extension.

A queue is a topic, and its values are entries with the field `value`; any topic can be read as one. What is popped
stays: others have their own places, and retention alone removes anything.
"""

from __future__ import annotations

from rlite_pubsub.engine.access.permission import readable
from rlite_pubsub.engine.arguments.help import usage
from rlite_pubsub.engine.arguments.lookup import find_topic, keyspace_of, topic_for_change
from rlite_pubsub.engine.arguments.queue_lookup import no_queue, queue_for_change
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.table import Arg, KeySpec, command
from rlite_pubsub.groups import chain
from rlite_pubsub.groups.group import Group, all_groups, destroy, group_of
from rlite_pubsub.keyspace.topic.append import encode_entry, next_id
from rlite_pubsub.keyspace.topic.append_rules import check_size
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import SYNTAX, CommandError
from rlite_pubsub.protocol.replies import Reply
from rlite_pubsub.storage.keys.key_records import TOPIC
from rlite_pubsub.storage.topics import entry_ids

SINCE = "0.2.0"
VALUE = b"value"
"""The field of a value."""
_MAX_ENTRY_BYTES = 1 << 30
_TOO_LARGE = b"ERR Elements are too large to be stored"
_EXHAUSTED = b"ERR The stream has exhausted the last possible ID, unable to add more items"
_NAME = Arg("name", "key", key_spec=0)
_READ = (KeySpec(("RO", "ACCESS"), ("index", 1), ("range", 0, 1, 0)),)
_INSERT = (KeySpec(("RW", "INSERT"), ("index", 1), ("range", 0, 1, 0)),)
_REMOVE = (KeySpec(("RW", "DELETE"), ("index", 1), ("range", 0, 1, 0)),)


@command(
    "queue.create",
    arity=2,
    flags="write denyoom fast",
    group="stream",
    since=SINCE,
    summary="Create a queue, or use an existing topic as one",
    complexity="O(1)",
    arguments=(_NAME,),
    key_specs=_INSERT,
    ours=True,
)
def queue_create(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if it is a queue already."""
    queue = topic_for_change(session, args[1])
    if queue is None:
        queue = keyspace_of(session).create_topic(session.db, args[1])
    if queue.is_queue:
        return 0
    queue.is_queue = True
    queue.keyspace.changed(queue)
    return 1


@command(
    "queue.list",
    arity=-1,
    flags="readonly",
    group="stream",
    since=SINCE,
    summary="List the queues of the database, or the subscribers of one queue",
    complexity="O(N) where N is the number of keys of the database, or of subscribers",
    arguments=(Arg("name", "key", key_spec=0, optional=True),),
    key_specs=_READ,
    ours=True,
)
def queue_list(session: CommandSession, args: list[bytes]) -> Reply:
    """Of the database's queues, those that the user may read."""
    if len(args) > 2:
        raise CommandError(SYNTAX)
    if len(args) == 2:
        queue = find_topic(session, args[1])
        if queue is None:
            raise no_queue(args[1])
        return [_shown(subscriber) for subscriber in all_groups(queue)]
    keyspace = keyspace_of(session)
    names = readable(session.limits, [name for name, type_ in keyspace.databases.walk(session.db) if type_ == TOPIC])
    found = [record for record in (keyspace.find(session.db, name) for name in names) if isinstance(record, Topic)]
    return sorted(queue.name for queue in found if queue.is_queue)


def _shown(subscriber: Group) -> Reply:
    """`behind` is how many values it has yet to pop, those that were given back among them; null where deletions and
    its start leave that open. `leased` is how many it has popped with ACK and not acknowledged."""
    lag = chain.lag(subscriber)
    return {
        b"name": subscriber.name,
        b"position": entry_ids.text(subscriber.last_id),
        b"behind": None if lag is None else lag + subscriber.settings.released,
        b"leased": subscriber.pending_count,
        b"asleep": int(subscriber.settings.is_asleep),
    }


@command(
    "queue.push",
    arity=-3,
    flags="write denyoom fast",
    group="stream",
    since=SINCE,
    summary="Append values to a queue",
    complexity="O(1) for each value",
    arguments=(_NAME, Arg("value", multiple=True)),
    key_specs=_INSERT,
    ours=True,
)
def queue_push(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer the ids of the pushed values."""
    if max(map(len, args[2:])) > _MAX_ENTRY_BYTES:
        raise CommandError(_TOO_LARGE)
    queue = queue_for_change(session, args[1])
    if queue.last_id >= (entry_ids.PART_MAX, entry_ids.PART_MAX - len(args)):
        raise CommandError(_EXHAUSTED)
    for value in args[2:]:
        check_size(queue, len(VALUE) + len(value))
    ids = []
    for value in args[2:]:
        entry_id = next_id(queue.last_id, queue.keyspace.clock_ms())
        assert entry_id is not None
        queue.append(entry_id, encode_entry(entry_id, (VALUE, value)))
        session.engine.notifications.tell("t", b"xadd", session.db, args[1])
        ids.append(entry_ids.text(entry_id))
    if queue.has_append_rules:
        session.engine.chains.cut_if_full(queue)
    return ids


@command(
    "queue.delete",
    arity=-2,
    flags="write",
    group="stream",
    since=SINCE,
    summary="Remove a queue with its history, or one of its subscribers",
    complexity="O(1)",
    arguments=(_NAME, Arg("subscriber", optional=True)),
    key_specs=_REMOVE,
    ours=True,
)
def queue_delete(session: CommandSession, args: list[bytes]) -> Reply:
    """Answer 1, or 0 if it does not exist."""
    if len(args) > 3:
        raise CommandError(SYNTAX)
    queue = topic_for_change(session, args[1])
    if queue is None:
        return 0
    if len(args) == 2:
        keyspace_of(session).remove(queue)
        session.engine.notifications.tell("g", b"del", session.db, args[1])
        return 1
    subscriber = group_of(queue, args[2])
    if subscriber is None:
        return 0
    destroy(subscriber)
    session.engine.notifications.tell("t", b"xgroup-destroy", session.db, args[1])
    return 1


@command(
    "queue.help",
    arity=1,
    flags="loading stale",
    group="stream",
    since=SINCE,
    summary="Show helpful text about the QUEUE commands",
    complexity="O(1)",
    ours=True,
)
def queue_help(session: CommandSession, args: list[bytes]) -> Reply:
    return usage(b"queue.")
