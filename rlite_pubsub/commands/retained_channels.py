"""PUBLISH to a retained channel, whatever way it comes: first the entry, then the message.

Law 5: the replies leave behind the commit of the turn, which has the entries, and are errors where that fails.
Subscribers may have received the messages all the same: an error says that they are not in the topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.dispatch import failed
from rlite_pubsub.engine.refusal import Answers
from rlite_pubsub.engine.table import TABLE
from rlite_pubsub.keyspace.topic.retained import DATABASE
from rlite_pubsub.protocol.encoder import error
from rlite_pubsub.protocol.errors import CommandError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Instance
    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.pubsub.route import Route


def append(instance: Instance, name: bytes, tails: list[bytes]) -> None:
    """Make entries of messages. Raises StoreError, lmdb's own errors, and CommandError: then there is none of them."""
    keeping = instance.keeping
    if keeping is not None and keeping.retained.append(name, tails) and instance.notifications.wants("t"):
        for _ in tails:
            instance.notifications.tell("t", b"xadd", DATABASE, name)


def publish_retained(session: CommandSession, route: Route, tails: list[bytes]) -> bytes:
    """Publish a run of messages the short way. The replies in one piece, which is nobody else's, so that it is found in
    the outbox and can be taken back."""
    instance = session.instance
    assert route.topic is not None
    try:
        append(instance, route.topic, tails)
    except CommandError as refusal:
        return error(refusal.text) * len(tails)
    except Exception as failure:
        return error(failed(instance, TABLE.commands[b"publish"], failure)) * len(tails)
    replies = Answers(route.reply * len(tails))
    replies.requests = len(tails)
    keyspace = instance.keyspace
    if keyspace is not None and keyspace.turn.writes:
        instance.unacknowledged.append((session, replies))
    if route.receivers:
        session.hub.publish(route, tails)
    return replies
