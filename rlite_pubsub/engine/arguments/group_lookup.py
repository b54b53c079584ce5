"""Finding a command's group, and its consumer, which is created if it is new.

A handler's first find may come from a snapshot: it validates with that, and goes on with what `latest` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.lookup import find_topic, topic_for_change
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.protocol.errors import CommandError, c_string

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.groups.consumer import Consumer
    from rlite_pubsub.groups.group import Group


def no_group(key: bytes, name: bytes, where: bytes = b"") -> CommandError:
    """Return the error for a missing key or group."""
    return CommandError(b"NOGROUP No such key '%b' or consumer group '%b'%b" % (c_string(key), c_string(name), where))


def no_group_of_key(key: bytes, name: bytes) -> CommandError:
    """Return the error for a missing group of an existing key."""
    return CommandError(b"NOGROUP No such consumer group '%b' for key name '%b'" % (c_string(name), c_string(key)))


def find_group(session: CommandSession, key: bytes, name: bytes) -> Group | None:
    """Return the group, for reading. Raises CommandError if the key is not a topic."""
    topic = find_topic(session, key)
    return None if topic is None else group_of(topic, name)


def latest(session: CommandSession, key: bytes, group: Group) -> Group | None:
    """Return the same group, for changing; None if it is gone by now. Raises CommandError if the key is not a topic."""
    topic = topic_for_change(session, key)
    if topic is None or topic is group.topic:
        return group if topic is not None else None
    return group_of(topic, group.name)


def consumer_of(session: CommandSession, group: Group, name: bytes) -> Consumer:
    """Return the consumer, marked as seen now; a new one is created."""
    consumer = group.consumer(name)
    if consumer is None:
        return create_consumer(session, group, name)
    consumer.see(group.topic.keyspace.clock_ms())
    group.changed_consumer(consumer)
    return consumer


def consumer_in_time(session: CommandSession, group: Group, name: bytes) -> None:
    """Create a consumer of an ephemeral group before it is given anything, so that other processes know of it, too."""
    found = latest(session, group.topic.name, group)
    if found is not None and found.consumer(name) is None:
        create_consumer(session, found, name)


def create_consumer(session: CommandSession, group: Group, name: bytes) -> Consumer:
    """Create a consumer with a name that is free."""
    consumer = group.create_consumer(name)
    session.engine.notifications.tell("t", b"xgroup-createconsumer", group.topic.database, group.topic.name)
    return consumer
