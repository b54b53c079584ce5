"""What a command answers that the store could not keep."""

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
"""It is our own fault."""


def unwritten(failure: Exception) -> bytes:
    """The error of a command that the store could not keep."""
    if isinstance(failure, StoreHeld):
        return f"BUSY command not executed: {failure}".encode()
    if isinstance(failure, PartlySent):
        return f"PARTIAL some receivers may have the message, and others will not: {failure}".encode()
    code = "OOM" if isinstance(failure, StoreFull) else "MISCONF"
    return f"{code} command not allowed: {failure}".encode()


def refused(failure: StoreError) -> Exception:
    """What a handler raises for it: a request that is only to wait is handed in again."""
    return failure if isinstance(failure, StoreHeld) else CommandError(unwritten(failure))


def failed(keyspace: Keyspace, command: Command, failure: Exception) -> Error:
    """A handler was interrupted: nothing of what it did to keys may stay, nor of what the turn did before."""
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
    """Bring all that is committed to the disk. Raises CommandError."""
    try:
        syncing.now()
    except StoreError as failure:
        raise CommandError(b"ERR %b" % str(failure).encode()) from failure


Acknowledged: TypeAlias = list[tuple[Session, bytes]]
"""Replies, still in the outboxes of their sessions."""


class Answers(bytes):
    """The replies to several requests, in one piece."""

    requests: int
    is_heard: bool
    """They are PUBLISHes, which somebody hears whether there is a commit or not."""


def answers(replies: bytes, requests: int, *, is_heard: bool = False) -> Answers:
    """Bytes of their own, so that these replies are found in an outbox and no others."""
    made = Answers(replies)
    made.requests = requests
    made.is_heard = is_heard
    return made


def take_back(replies: Iterable[tuple[Session, bytes]], failure: Exception) -> None:
    """Law 5: what these replies acknowledge is not so. They are in their sessions' outboxes yet, and become errors."""
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
    """Put errors in the places of replies, both in the order in which they were said. They are looked for from the end
    on: an equal reply, such as +OK, is often the same object, and what was said before acknowledges something else."""
    end = len(said)
    for reply, instead in reversed(errors):
        for at in range(end - 1, -1, -1):
            if said[at] is reply:
                said[at] = instead
                end = at
                break


def refusal(failure: Exception) -> bytes:
    """That error as it goes out."""
    return error(unwritten(failure))
