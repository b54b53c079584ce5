"""SUBSCRIBE and its kin for the session of a durable subscriber: its names are its subscriber's, and outlive it.

A confirmation counts all that the subscriber holds, from before this session too. What the subscriber holds already is
confirmed again and changes nothing; UNSUBSCRIBE ends it for good, with what still waits under that name.
Law 5: acknowledge after commit. Each of these commands is a transaction of its own.
"""

from __future__ import annotations

from rlite_pubsub.durable.durables import CLIENT_NAME, Durables
from rlite_pubsub.engine.refusal import unwritten
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Push, Replies, Reply
from rlite_pubsub.pubsub.kinds import SHARDS, Kind
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.errors import StoreError


def is_named_durable(session: CommandSession) -> bool:
    """Whether its first subscription attaches it, because of its client name."""
    name = session.name
    is_durable = name.startswith(CLIENT_NAME) and len(name) > len(CLIENT_NAME)
    return is_durable and not session.holds_names and session.hub.durables is not None


def subscribe_durably(session: CommandSession, kind: Kind, args: list[bytes]) -> Reply:
    """Attach the session if it is not yet, and let its subscriber hold these names."""
    durables, names = durables_of(session), args[1:]
    try:
        if session.feed is None:
            name = session.name.removeprefix(CLIENT_NAME)
            if session.limits is not None:
                from rlite_pubsub.engine.access.durable_rights import check_attachment  # as in dispatch.py

                check_attachment(session, name, args)
            durables.attach(session, name)
        new = dict.fromkeys(durables.subscribe(session, kind, names))
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure
    count = name_count(session, kind) - len(new)
    replies = []
    for name in names:
        if name in new:
            del new[name]
            count += 1
        replies.append(Push([kind.subscribed, name, count]))
    return Replies(replies)


def unsubscribe_durably(session: CommandSession, kind: Kind, names: list[bytes]) -> Reply:
    """Let its subscriber go of these names, or of all of this kind."""
    names = names or list(session.names[kind.index])
    count = name_count(session, kind)
    try:
        gone = dict.fromkeys(durables_of(session).unsubscribe(session, kind, names))
    except StoreError as failure:
        raise CommandError(unwritten(failure)) from failure
    replies = []
    for name in names:
        if name in gone:
            del gone[name]
            count -= 1
        replies.append(Push([kind.unsubscribed, name, count]))
    return Replies(replies or [Push([kind.unsubscribed, None, count])])


def durables_of(session: CommandSession) -> Durables:
    """Where durable subscribers are attached. Raises CommandError where none can be."""
    durables = session.hub.durables
    if durables is None:
        raise CommandError(b"ERR there is no store that keeps durable subscribers")
    assert isinstance(durables, Durables)
    return durables


def name_count(session: Session, kind: Kind) -> int:
    """The number that a confirmation of this kind reports."""
    return session.shard_count if kind is SHARDS else session.name_count
