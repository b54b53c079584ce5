"""The position of a replica store in its master's history. In data.mdb, written in the transaction of what was
executed, so that it is always exact.

    key    \\0 "replica"    value  state u8 | offset u64 | database u32 | the history's id, as the
                                   master says it

State 1: the store has all of that history up to the offset. State 0: a file of the master's is being loaded. The
database is the one that the master has selected there: it does not say so again.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

_VALUE = Struct(">BQI")


class ReplicaPosition(NamedTuple):
    """The position as it is stored."""

    is_whole: bool
    offset: int
    database: int
    history: bytes


def get(txn: Txn) -> ReplicaPosition | None:
    value = txn.get(databases.REPLICA)
    if value is None:
        return None
    state, offset, database = _VALUE.unpack_from(value)
    return ReplicaPosition(bool(state), offset, database, value[_VALUE.size :])


def put(txn: Txn, position: ReplicaPosition) -> None:
    txn.put(databases.REPLICA, _VALUE.pack(position.is_whole, position.offset, position.database) + position.history)


def forget(txn: Txn) -> None:
    """Remove the position: the store is no replica."""
    txn.delete(databases.REPLICA)
