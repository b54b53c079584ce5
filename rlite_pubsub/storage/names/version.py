"""The routes version: every change of who receives what moves it, and others know that their routes are old.

    key \\0 "routes"   value  counter u64
"""

from __future__ import annotations

from struct import Struct

from rlite_pubsub.storage.databases import ROUTES_VERSION
from rlite_pubsub.storage.environment import Txn

_COUNTER = Struct(">Q")


def routes_version(txn: Txn) -> int:
    found = txn.get(ROUTES_VERSION)
    return 0 if found is None else int(_COUNTER.unpack(found)[0])


def bump(txn: Txn) -> int:
    following = routes_version(txn) + 1
    txn.put(ROUTES_VERSION, _COUNTER.pack(following))
    return following
