"""The id by which a store is known wherever its copies are: in the targets of its backups.

    key  '\\0' "identity"    value  id (16 bytes), random

It is in data.mdb, so that a restored store is the store that was backed up, and goes on in the same target.
"""

from __future__ import annotations

import secrets

from rlite_pubsub.storage.databases import IDENTITY
from rlite_pubsub.storage.environment import Txn

_BYTES = 16


def get(txn: Txn) -> str | None:
    """Return its 32 hex digits; None if nobody has asked for an id yet."""
    found = txn.get(IDENTITY)
    return None if found is None else found.hex()


def settle(txn: Txn) -> str:
    """Return the store's id, making it if it has none."""
    found = get(txn)
    if found is None:
        found = secrets.token_hex(_BYTES)
        txn.put(IDENTITY, bytes.fromhex(found))
    return found
