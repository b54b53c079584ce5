"""Taking from the first key that has something, or waiting for one: BLPOP, BZPOPMIN and their kin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlite_pubsub.protocol.errors import WRONG_TYPE, CommandError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlite_pubsub.engine.session import CommandSession
    from rlite_pubsub.keyspace.records import Record
    from rlite_pubsub.protocol.replies import Reply


def take_or_wait(
    session: CommandSession,
    kind: type[Record],
    keys: Sequence[bytes],
    timeout_ms: int,
    take: Callable[[bytes], Reply],
) -> Reply:
    """Take from the first key of this kind; if there is none, wait for one. `take` returns None if there is nothing
    after all. Raises CommandError if a key has another type; for a waiting client that is not an error."""
    keyspace, database = session.engine.keyspace, session.db
    for key in keys:
        found = keyspace.find(database, key)
        if found is None:
            continue
        if not isinstance(found, kind):
            raise CommandError(WRONG_TYPE)
        reply = take(key)
        if reply is not None:
            return reply

    def take_there(key: bytes) -> Reply:
        return take(key) if isinstance(keyspace.find(database, key), kind) else None

    return session.engine.waiting.block(session, keys, timeout_ms, take_there)
