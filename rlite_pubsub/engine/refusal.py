"""The error of a command whose changes the store could not keep."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from rlite_pubsub.protocol.encoder import error
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.protocol.replies import Error
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.errors import PartlySent, StoreError, StoreFull, StoreHeld, damage_in

if TYPE_CHECKING:
    from rlite_pubsub.engine.table import Command
    from rlite_pubsub.keyspace.keyspace import Keyspace
    from rlite_pubsub.storage.checkpoints.syncing import Syncing

log = logging.getLogger("rlite_pubsub")

INTERNAL = b"ERR internal error, see the server's log"
"""The fault is ours."""


def unwritten(failure: Exception) -> bytes:
    """Return the error text for a command whose changes the store could not keep."""
    if isinstance(failure, StoreHeld):
        return f"BUSY command not executed: {failure}".encode()
    if isinstance(failure, PartlySent):
        return f"PARTIAL some receivers may have the message, and others will not: {failure}".encode()
    code = "OOM" if isinstance(failure, StoreFull) else "MISCONF"
    return f"{code} command not allowed: {failure}".encode()


def refused(failure: StoreError) -> Exception:
    """Return the exception that a handler raises for such a failure: a request that only has to wait is handed in
    again."""
    return failure if isinstance(failure, StoreHeld) else CommandError(unwritten(failure))


def failed(keyspace: Keyspace, command: Command, failure: Exception) -> Error:
    """Undo what an interrupted handler, and the turn before it, did to keys, and return the error."""
    if isinstance(failure, StoreHeld):
        return Error(unwritten(failure))  # it has done nothing
    damage = damage_in(failure)
    if damage is not None:
        log.error("%s met what cannot be read", command.name.decode("latin-1"), exc_info=failure)
        failure = damage
    if keyspace.turn.txn is not None or isinstance(failure, StoreError):
        failure = keyspace.fail(failure)
    if isinstance(failure, StoreError):
        return Error(unwritten(failure))
    log.error("%s failed", command.name.decode("latin-1"), exc_info=failure)
    return Error(INTERNAL)


def sync_store(syncing: Syncing) -> None:
    """Bring everything committed to the disk. Raises CommandError."""
    try:
        syncing.now()
    except StoreError as failure:
        raise CommandError(b"ERR %b" % str(failure).encode()) from failure


Acknowledged: TypeAlias = list[tuple[Session, bytes]]
"""Replies that are still in the outboxes of their sessions."""


class Answers(bytes):
    """The replies to several requests, in one piece."""

    requests: int
    is_heard: bool
    """They answer PUBLISHes, which subscribers hear whether there is a commit or not."""


def answers(replies: bytes, requests: int, *, is_heard: bool = False) -> Answers:
    """Return a copy of the replies: a new object, so that no others in an outbox are mistaken for them."""
    made = Answers(replies)
    made.requests = requests
    made.is_heard = is_heard
    return made


def take_back(replies: Iterable[tuple[Session, bytes]], failure: Exception) -> None:
    """Law 5: replace replies by errors, because what they acknowledge was not committed. They are still in their
    sessions' outboxes."""
    instead = refusal(failure)
    taken: dict[Session, list[tuple[bytes, bytes]]] = {}
    for session, reply in replies:
        answer = instead
        if isinstance(reply, Answers):
            answer = (refusal(PartlySent(failure)) if reply.is_heard else instead) * reply.requests
        taken.setdefault(session, []).append((reply, answer))
    for session, errors in taken.items():
        replace(session.said, errors)


def replace(said: list[bytes], errors: list[tuple[bytes, bytes]]) -> None:
    """Put errors in the places of replies, both in the order in which they were said. The search begins at the end: an
    equal reply, such as +OK, is often the same object, and an earlier one acknowledges something else."""
    end = len(said)
    for reply, instead in reversed(errors):
        for at in range(end - 1, -1, -1):
            if said[at] is reply:
                said[at] = instead
                end = at
                break


def refusal(failure: Exception) -> bytes:
    """Return the encoded error."""
    return error(unwritten(failure))
