"""What a command has popped for a program without a server, and the request that puts it back.

Nothing lies between such a program and its store that could lose a reply. So what was popped for a read that is
cancelled, interrupted or over its time before the program has the reply goes back to where it was: the session notes
the request here, and executes it if need be (embedded/giving_back.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rlite_pubsub.engine.client import Client
    from rlite_pubsub.keyspace.records import Record


class Taken(NamedTuple):
    """What one command has popped."""

    database: int
    request: list[bytes]
    """It puts it back; its second word is the key."""
    expires_ms: int
    """The key's; 0: never."""


def note_popped(session: Client, found: Record, request: list[bytes]) -> None:
    """Note the request that puts back what was just popped from this key, for a session that `gives_back`. What an EXEC
    or a script pops stays popped, as all else that they have done."""
    if not session.deny_blocking:
        session.note_taken(Taken(found.database, request, found.expires_ms))
