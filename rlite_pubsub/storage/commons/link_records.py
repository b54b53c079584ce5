"""The links of a store to other servers, as they were requested. In data.mdb; they may contain passwords.

    key    'y' | name      value  JSON (links/definition.py)

Whoever changes one moves the version of the commons (shared_settings.py), and announces it.
"""

from __future__ import annotations

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.commons import shared_settings
from rlite_pubsub.storage.environment import Txn


def every(txn: Txn) -> dict[str, bytes]:
    """Return all links, by name."""
    return {key[1:].decode("latin-1"): bytes(value) for key, value in databases.items(txn, databases.LINKS)}


def is_any(txn: Txn) -> bool:
    return next(databases.items(txn, databases.LINKS), None) is not None


def get(txn: Txn, name: str) -> bytes | None:
    return txn.get(databases.LINKS + name.encode("latin-1"))


def put(txn: Txn, name: str, record: bytes) -> int:
    """Write a link, replacing the one of that name; return the new version of the commons."""
    txn.put(databases.LINKS + name.encode("latin-1"), record)
    return shared_settings.bump(txn)


def remove(txn: Txn, name: str) -> int:
    """Remove a link; return the new version of the commons."""
    txn.delete(databases.LINKS + name.encode("latin-1"))
    return shared_settings.bump(txn)
