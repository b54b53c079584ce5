"""Where a store's blocks are, and the id by which blocks know their store.

    key  '\\0' "cold"    value  id (16 bytes), url: as cold/place.py reads it, empty for the folder `cold` of the store

The sealing process writes it, so that all other processes of the store know where to look. Secrets do not belong in the
url: they come from the environment.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from rlite_pubsub.storage.databases import COLD, COLD_HOME
from rlite_pubsub.storage.environment import Txn

_ID_BYTES = 16


class ColdHome(NamedTuple):
    """The place of a store's cold store."""

    store: str
    """32 hex digits."""
    url: str


def get(txn: Txn) -> ColdHome | None:
    """Return it; None if nothing was ever sealed."""
    found = txn.get(COLD_HOME)
    return None if found is None else ColdHome(found[:_ID_BYTES].hex(), found[_ID_BYTES:].decode())


def settle(txn: Txn, url: str) -> ColdHome:
    """Set the place of the blocks. The store keeps its id."""
    before = get(txn)
    home = ColdHome(secrets.token_hex(_ID_BYTES) if before is None else before.store, url)
    if home != before:
        txn.put(COLD_HOME, bytes.fromhex(home.store) + url.encode())
    return home


def has_blocks(txn: Txn) -> bool:
    """Return whether any topic has a cold part."""
    cursor = txn.cursor()
    return bool(cursor.set_range(COLD)) and cursor.key().startswith(COLD)
