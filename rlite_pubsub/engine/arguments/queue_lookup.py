"""Finding a command's queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.lookup import topic_for_change
from rlite_pubsub.protocol.errors import CommandError, c_string

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.topic.topic import Topic


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
