"""The keys that were changed, and by whom, for processes whose clients track keys (CLIENT TRACKING). In data.mdb.

Written only while another process tracks, and in the very transaction that changes the keys: a process that reads these
rows misses none. Only the newest are kept; a process that was away for longer learns that it has missed something.

    key    'j' | transaction u64    value  writer (a subscriber) u64 | what u8 | of each key: length u32, name
    key    'j' | 0 u64              value  rows up to this transaction are gone u64 | bytes of the rows u64

what: 0 these keys, 1 nobody knows which, 2 all were removed (FLUSHALL) and then these were changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.journal.recording import delete_here

THESE, UNKNOWN, ALL_REMOVED = 0, 1, 2
MAX_BYTES = 1 << 20
"""The size of all rows."""
MAX_ROW_BYTES = 64 << 10
"""The size of the names of one row; beyond it, the names are treated as unknown."""

_KEY = Struct(">cQ")
_HEAD = Struct(">QB")
_LENGTH = Struct(">I")
_STATE = Struct(">QQ")


class ChangedKeys(NamedTuple):
    """The changes of one transaction."""

    transaction: int
    writer: int
    what: int
    names: list[bytes]


class Changes(NamedTuple):
    """The changes since a transaction."""

    rows: list[ChangedKeys]
    is_whole: bool
    """False: there were more, which are gone."""


def add(txn: Txn, writer: int, what: int, names: Iterable[bytes]) -> None:
    """Record that this transaction changes these keys."""
    packed = b"".join([_LENGTH.pack(len(name)) + name for name in names])
    if len(packed) > MAX_ROW_BYTES:
        what, packed = UNKNOWN if what == THESE else what, b""
    row = _HEAD.pack(writer, what) + packed
    txn.put(_KEY.pack(databases.CHANGED_KEYS, txn.id()), row)
    gone_to, size_bytes = _state(txn)
    size_bytes += len(row)
    while size_bytes > MAX_BYTES:
        cursor = txn.cursor()
        cursor.set_range(_KEY.pack(databases.CHANGED_KEYS, 1))
        gone_to = _KEY.unpack(cursor.key())[1]
        size_bytes -= len(cursor.value())
        delete_here(txn, cursor)
    txn.put(_KEY.pack(databases.CHANGED_KEYS, 0), _STATE.pack(gone_to, size_bytes))


def since(txn: Txn, transaction: int) -> Changes:
    """Return what was changed after this transaction, the oldest first."""
    rows = []
    for key, value in databases.items_from(
        txn, databases.CHANGED_KEYS, _KEY.pack(databases.CHANGED_KEYS, transaction + 1)
    ):
        writer, what = _HEAD.unpack_from(value)
        rows.append(ChangedKeys(_KEY.unpack(key)[1], writer, what, _names(value)))
    return Changes(rows, _state(txn)[0] <= transaction)


def _names(value: bytes) -> list[bytes]:
    names, at = [], _HEAD.size
    while at < len(value):
        end = at + _LENGTH.size + _LENGTH.unpack_from(value, at)[0]
        names.append(value[at + _LENGTH.size : end])
        at = end
    return names


def _state(txn: Txn) -> tuple[int, int]:
    found = txn.get(_KEY.pack(databases.CHANGED_KEYS, 0))
    return (0, 0) if found is None else _STATE.unpack(found)
