"""Settings and users that belong to the store: the same for all processes, and kept when none runs. In data.mdb.

    key    'W' | name of the directive      value  as CONFIG GET prints it
    key    'U' | name part of the user      value  the user's line, as ACL LIST prints it
    key    \\0 "commons"                     value  counter u64: every change of these, and of
                                            function_libraries.py's, moves it
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.environment import Txn


class Shared(NamedTuple):
    """The store's settings and users; a setting that is missing was never set."""

    version: int
    settings: dict[str, bytes]
    users: list[bytes]
    """Their lines."""


def get(txn: Txn) -> Shared:
    settings = {key[1:].decode(): value for key, value in databases.items(txn, databases.SETTINGS)}
    return Shared(version(txn), settings, [line for _, line in databases.items(txn, databases.USERS)])


def setting(txn: Txn, name: str) -> bytes | None:
    """Return one setting of the store; None if it was never set."""
    return txn.get(databases.SETTINGS + name.encode())


def has_users(txn: Txn) -> bool:
    """Return whether the store has any user."""
    return next(databases.items(txn, databases.USERS), None) is not None


def version(txn: Txn) -> int:
    found = txn.get(databases.COMMONS_VERSION)
    return 0 if found is None else int.from_bytes(found, "big")


def put_settings(txn: Txn, values: Mapping[str, bytes]) -> int:
    """Write settings; return the new version of the commons."""
    for name, value in values.items():
        txn.put(databases.SETTINGS + name.encode(), value)
    return bump(txn)


def put_users(txn: Txn, lines: Mapping[bytes, bytes | None]) -> int:
    """Write users' lines by name, None to remove one; return the new version of the commons."""
    for name, line in lines.items():
        key = databases.USERS + key_parts.key_part(name)
        if line is None:
            txn.delete(key)
        else:
            txn.put(key, line)
    return bump(txn)


def bump(txn: Txn) -> int:
    """Move the version of the commons, because something in them has changed; return the new version."""
    following = version(txn) + 1
    txn.put(databases.COMMONS_VERSION, following.to_bytes(8, "big"))
    return following
