"""Finding a command's sorted set, and the reply for its members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.lookup import find, for_change
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.protocol.errors import WRONG_TYPE, CommandError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.records import Record
    from rlite_pubsub.keyspace.sorted_sets import Scored
    from rlite_pubsub.protocol.replies import Reply


def sorted_set_of(record: Record | None) -> SortedSet | None:
    """Return the key as a sorted set. Raises CommandError if it is something else."""
    if record is None or isinstance(record, SortedSet):
        return record
    raise CommandError(WRONG_TYPE)


def find_sorted_set(session: CommandSession, key: bytes) -> SortedSet | None:
    """Return a sorted set, for reading. Raises CommandError if the key is something else."""
    return sorted_set_of(find(session, key))


def sorted_set_for_change(session: CommandSession, key: bytes) -> SortedSet | None:
    """Return a sorted set, for changing. Raises CommandError if the key is something else."""
    return sorted_set_of(for_change(session, key))


def tell_sorted_set(session: CommandSession, event: bytes, key: bytes) -> None:
    """Notify that something happened to a sorted set."""
    notifications = session.engine.notifications
    if notifications.classes:
        notifications.tell("z", event, session.db, key)


def drop_if_empty(session: CommandSession, found: SortedSet) -> None:
    """Remove a sorted set without members."""
    if not len(found):
        session.engine.keyspace.remove(found)
        session.engine.notifications.tell("g", b"del", session.db, found.name)


def answered(session: CommandSession, members: Iterable[Scored], *, with_scores: bool) -> Reply:
    """Return the reply for members, with their scores if wanted: in RESP3 each pair is an array."""
    if not with_scores:
        return [member for member, _ in members]
    if session.protocol == 3:
        return [[member, score] for member, score in members]
    return [word for scored in members for word in scored]
