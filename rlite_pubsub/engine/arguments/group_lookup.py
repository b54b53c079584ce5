"""Finding the group that a command names, and the consumer, made if it is new.

What a handler finds first may be from a snapshot: it validates with that, and goes on with what `latest` finds.
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
    """Neither key nor group may be missing."""
    return CommandError(b"NOGROUP No such key '%b' or consumer group '%b'%b" % (c_string(key), c_string(name), where))


def no_group_of_key(key: bytes, name: bytes) -> CommandError:
    """The key is there, and the group is not."""
    return CommandError(b"NOGROUP No such consumer group '%b' for key name '%b'" % (c_string(name), c_string(key)))


def find_group(session: CommandSession, key: bytes, name: bytes) -> Group | None:
    """The group, to read it. Raises CommandError if the key is no topic."""
    topic = find_topic(session, key)
    return None if topic is None else group_of(topic, name)


def latest(session: CommandSession, key: bytes, group: Group) -> Group | None:
    """The same group, ready to be changed; None if it is gone meanwhile. Raises CommandError if the key is no topic."""
    topic = topic_for_change(session, key)
    if topic is None or topic is group.topic:
        return group if topic is not None else None
    return group_of(topic, group.name)


def consumer_of(session: CommandSession, group: Group, name: bytes) -> Consumer:
    """The consumer, seen now; made if it is new."""
    consumer = group.consumer(name)
    if consumer is None:
        return create_consumer(session, group, name)
    consumer.see(group.topic.keyspace.clock_ms())
    group.changed_consumer(consumer)
    return consumer


def consumer_in_time(session: CommandSession, group: Group, name: bytes) -> None:
    """A consumer of an ephemeral group is there before it is given anything: so other processes know of it, too."""
    found = latest(session, group.topic.name, group)
    if found is not None and found.consumer(name) is None:
        create_consumer(session, found, name)


def create_consumer(session: CommandSession, group: Group, name: bytes) -> Consumer:
    """A new one, of a name that is free."""
    consumer = group.create_consumer(name)
    session.engine.notifications.tell("t", b"xgroup-createconsumer", group.topic.database, group.topic.name)
    return consumer
