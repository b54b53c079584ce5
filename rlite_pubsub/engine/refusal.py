"""What a command answers that the store could not keep."""

from __future__ import annotations

from collections.abc import Iterable

from rlite_pubsub.protocol.encoder import error
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.errors import StoreFull


def unwritten(failure: Exception) -> bytes:
    """The error of a command that the store could not keep."""
    code = "OOM" if isinstance(failure, StoreFull) else "MISCONF"
    return f"{code} command not allowed: {failure}".encode()


class Answers(bytes):
    """The replies to several requests, in one piece."""

    requests: int


def take_back(replies: Iterable[tuple[Session, bytes]], failure: Exception) -> None:
    """Law 5: what these replies acknowledge is not so. They are in their sessions' outboxes yet, and become errors."""
    instead = refusal(failure)
    for session, reply in replies:
        count = reply.requests if isinstance(reply, Answers) else 1
        session.said[:] = [instead * count if part is reply else part for part in session.said]


def refusal(failure: Exception) -> bytes:
    """That error as it goes out."""
    return error(unwritten(failure))
