"""Finding a command's queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.lookup import find_topic, topic_for_change
from rlite_pubsub.groups.group import group_of
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.protocol.errors import CommandError, c_string

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.groups.group import Group


def no_queue(name: bytes) -> CommandError:
    return CommandError(b"NOQUEUE No such queue '%b'" % c_string(name))


def no_subscriber(queue: bytes, name: bytes) -> CommandError:
    return CommandError(b"NOSUBSCRIBER No such subscriber '%b' of queue '%b'" % (c_string(name), c_string(queue)))


def queue_for_change(session: CommandSession, name: bytes) -> Topic:
    """Return the queue, for changing. Raises CommandError."""
    queue = topic_for_change(session, name)
    if queue is None:
        raise no_queue(name)
    return queue


def subscriber_of(record: object, queue: bytes, name: bytes) -> Group:
    """Return a subscriber of the queue that was found. Raises CommandError."""
    if not isinstance(record, Topic):
        raise no_queue(queue)
    subscriber = group_of(record, name)
    if subscriber is None:
        raise no_subscriber(queue, name)
    return subscriber


def find_subscriber(session: CommandSession, queue: bytes, name: bytes) -> Group:
    """Return the subscriber, for reading. Raises CommandError."""
    return subscriber_of(find_topic(session, queue), queue, name)


def awake(subscriber: Group) -> Group:
    """Return it. Raises CommandError if it is asleep."""
    if subscriber.settings.is_asleep:
        who, name = c_string(subscriber.name), c_string(subscriber.topic.name)
        raise CommandError(b"ASLEEP Subscriber '%b' of queue '%b' is asleep; QUEUE.WAKEUP wakes it" % (who, name))
    return subscriber
