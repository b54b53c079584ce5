"""Finding a command's hash. Expired fields are removed first, or some of them if there are many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.engine.arguments.lookup import find, for_change
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.protocol.errors import WRONG_TYPE, CommandError
from rlite_pubsub.storage.errors import StoreHeld

if TYPE_CHECKING:
    from rlite_pubsub.engine.session import CommandSession


def find_hash(session: CommandSession, key: bytes) -> Hash | None:
    """Return a hash, for reading. Raises CommandError if the key is something else."""
    found = find(session, key)
    if found is None:
        return None
    if not isinstance(found, Hash):
        raise CommandError(WRONG_TYPE)
    return fresh(session, found)


def fresh(session: CommandSession, found: Hash) -> Hash | None:
    """Return a hash without its expired fields; None if it has no others."""
    if found.due_ms and session.engine.field_expiry.is_due(found):
        try:
            return session.engine.field_expiry.take(session.db, found.name)
        except StoreHeld:  # they are hidden; the next process that can write removes them
            again = session.engine.keyspace.find(session.db, found.name)  # others may have written meanwhile
            return again if isinstance(again, Hash) else None
    return found


def hash_for_change(session: CommandSession, key: bytes) -> Hash | None:
    """Return a hash, for changing. Raises CommandError if the key is something else."""
    found = for_change(session, key)
    if found is None:
        return None
    if not isinstance(found, Hash):
        raise CommandError(WRONG_TYPE)
    if found.due_ms and session.engine.field_expiry.is_due(found):
        return session.engine.field_expiry.take(session.db, key)
    return found


def hash_or_new(session: CommandSession, key: bytes) -> Hash:
    """Like `hash_for_change`, but makes a new one if the key does not exist."""
    found = hash_for_change(session, key)
    return session.engine.keyspace.create(Hash, session.db, key) if found is None else found


def tell_hash(session: CommandSession, event: bytes, key: bytes) -> None:
    """Notify that something happened to a hash."""
    session.engine.notifications.tell("h", event, session.db, key)


def drop_if_empty(session: CommandSession, found: Hash) -> None:
    """Remove a hash without fields."""
    if not len(found):
        session.engine.keyspace.remove(found)
        session.engine.notifications.tell("g", b"del", session.db, found.name)
