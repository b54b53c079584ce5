"""What a command answers that the store could not keep."""

from __future__ import annotations

from rlite_pubsub.protocol.encoder import error
from rlite_pubsub.storage.errors import StoreFull


def unwritten(failure: Exception) -> bytes:
    """The error of a command that the store could not keep."""
    code = "OOM" if isinstance(failure, StoreFull) else "MISCONF"
    return f"{code} command not allowed: {failure}".encode()


def refusal(failure: Exception) -> bytes:
    """That error as it goes out."""
    return error(unwritten(failure))
