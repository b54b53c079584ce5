"""A sorted set that a command has made of others, put in the place of whatever was under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.lookup import for_change
from rlite_pubsub.engine.arguments.sorted_set_lookup import tell_sorted_set
from rlite_pubsub.keyspace.sorted_sets import SortedSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.sorted_sets import Scored


def store_sorted_set(
    session: CommandSession, key: bytes, members: Sequence[Scored], event: bytes, longest: int = 0
) -> int:
    """How many there are; none leave no key. `longest`: as in `SortedSet.take`."""
    keyspace = session.engine.keyspace
    before = for_change(session, key)
    if before is not None:
        keyspace.remove(before)
    if not members:
        if before is not None:
            session.engine.notifications.tell("g", b"del", session.db, key)
        return 0
    made = keyspace.create(SortedSet, session.db, key)
    made.take(members, longest=longest)
    tell_sorted_set(session, event, key)
    return len(made)
