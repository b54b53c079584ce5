"""SUBSCRIBE and its kin for the session of a durable subscriber: its names are its subscriber's, and outlive it.

A confirmation counts all that the subscriber holds, from before this session too. What the subscriber holds already is
confirmed again and changes nothing; UNSUBSCRIBE ends it for good, with what still waits under that name.
Law 5: acknowledge after commit. Each of these commands is a transaction of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.protocol.replies import Push, Replies

if TYPE_CHECKING:
    from rlite_pubsub.durable.attaching import Durables
    from rlite_pubsub.pubsub.kinds import Kind
    from rlite_pubsub.pubsub.session import Session


def subscribe(durables: Durables, session: Session, kind: Kind, names: list[bytes]) -> Replies:
    """Let the subscriber that the session is attached to hold these names. Raises StoreError."""
    new = dict.fromkeys(durables.subscribe(session, kind, names))
    count = session.count_of(kind) - len(new)
    replies = []
    for name in names:
        if name in new:
            del new[name]
            count += 1
        replies.append(Push([kind.subscribed, name, count]))
    return Replies(replies)


def unsubscribe(durables: Durables, session: Session, kind: Kind, names: list[bytes]) -> Replies:
    """Let it go of these names, or of all of this kind. Raises StoreError."""
    names = names or list(session.names[kind.index])
    count = session.count_of(kind)
    gone = dict.fromkeys(durables.unsubscribe(session, kind, names))
    replies = []
    for name in names:
        if name in gone:
            del gone[name]
            count -= 1
        replies.append(Push([kind.unsubscribed, name, count]))
    return Replies(replies or [Push([kind.unsubscribed, None, count])])
