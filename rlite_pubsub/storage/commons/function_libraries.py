"""Libraries of functions (FUNCTION LOAD), which belong to the store, as users do. In data.mdb.

    key    'f' | name part of the library   value  its code, whose first line says its name
    key    \\0 "functions"                   value  counter u64: every change of these moves it
"""

from __future__ import annotations

from collections.abc import Mapping

from rlite_pubsub.storage import databases, key_parts
from rlite_pubsub.storage.commons import shared_settings
from rlite_pubsub.storage.environment import Txn


def version(txn: Txn) -> int:
    found = txn.get(databases.FUNCTIONS_VERSION)
    return 0 if found is None else int.from_bytes(found, "big")


def codes(txn: Txn) -> list[bytes]:
    """Return the code of all libraries, in the order of their keys."""
    return [code for _, code in databases.items(txn, databases.FUNCTION_LIBRARIES)]


def put(txn: Txn, changes: Mapping[bytes, bytes | None], *, only: bool = False) -> tuple[int, int]:
    """Write libraries' codes by name, None to remove one; with `only`, remove all others. Returns the new versions of
    the libraries and of the commons."""
    if only:
        databases.delete_all(txn, databases.FUNCTION_LIBRARIES)
    for name, code in changes.items():
        key = databases.FUNCTION_LIBRARIES + key_parts.key_part(name)
        if code is None:
            txn.delete(key)
        else:
            txn.put(key, code)
    following = version(txn) + 1
    txn.put(databases.FUNCTIONS_VERSION, following.to_bytes(8, "big"))
    return following, shared_settings.bump(txn)


def misplaced(txn: Txn, names: list[bytes]) -> list[bytes]:
    """Return the names of libraries that stand under another one's key. `names`: those of all libraries in the order of
    their keys."""
    keys = [key for key, _ in databases.items(txn, databases.FUNCTION_LIBRARIES)]
    return [
        name
        for key, name in zip(keys, names, strict=True)
        if key != databases.FUNCTION_LIBRARIES + key_parts.key_part(name)
    ]
