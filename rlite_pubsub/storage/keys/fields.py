"""The fields of large hashes: one record for each, under its digest (digests.py); and which fields expire, and when.

    fields          'H', number u64, digest (16 bytes)                due ms u64 (0: never), length of the field u32,
                                                                      the field, its value
    field expiries  'N', number u64, due ms u64, digest (16 bytes)    empty
    expiring        'J', due ms u64, space u32, digest (16 bytes)     empty: so the first field of the key at this place

A small hash, whose fields stand in the record of its key, has only its row in `expiring`.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import digests, key_bytes

_NUMBER: Final = Struct(">cQ")
_VALUE: Final = Struct(">QI")
_pack_number: Final = _NUMBER.pack
_field: Final = key_bytes.field
_DUE: Final = Struct(">Q")
HASH_HEAD: Final = Struct(">QQ")
"""The beginning of the body of a hash's key: its number, and when its first field expires."""


class Field(NamedTuple):
    """A field of a hash."""

    name: bytes
    value: bytes
    due_ms: int
    """When it expires; 0: never."""


class HeldField:
    """A field in memory, and its key."""

    __slots__ = ("due_ms", "key", "value")

    def __init__(self, key: bytes, value: bytes, due_ms: int) -> None:
        self.key = key
        self.value = value
        self.due_ms = due_ms


def prefix(number: int) -> bytes:
    """Return the beginning of the keys of a hash's fields."""
    return _NUMBER.pack(databases.FIELDS, number)


def unpack(stored: bytes) -> Field:
    """Return the field in a record."""
    due_ms, length = _VALUE.unpack_from(stored)
    end = _VALUE.size + length
    return Field(stored[_VALUE.size : end], stored[end:], due_ms)


def key(number: int, name: bytes) -> bytes:
    """Return the key of a field."""
    return _pack_number(databases.FIELDS, number) + digests.digest(name)


def pack(name: bytes, value: bytes, due_ms: int) -> bytes:
    """Return the record of a field."""
    return _field(name, value, due_ms)


def set_due(txn: Txn, number: int, key: bytes, before_ms: int, after_ms: int) -> None:
    """Move a field, by its key, in the order of its hash's expiries; 0 is never."""
    if before_ms == after_ms:
        return
    of_hash = _NUMBER.pack(databases.FIELD_EXPIRIES, number)
    digest = key[_NUMBER.size :]
    if before_ms:
        txn.delete(of_hash + _DUE.pack(before_ms) + digest)
    if after_ms:
        txn.put(of_hash + _DUE.pack(after_ms) + digest, b"")


def walk(txn: Txn, number: int) -> Iterator[Field]:
    """Yield every field. Change nothing meanwhile."""
    return map(unpack, digests.walk(txn, prefix(number)))


def first_due_ms(txn: Txn, number: int) -> int:
    """Return when the first of the fields expires; 0: none does."""
    of_hash = _NUMBER.pack(databases.FIELD_EXPIRIES, number)
    for key, _ in databases.items(txn, of_hash):
        return int(_DUE.unpack_from(key, len(of_hash))[0])
    return 0


def over(txn: Txn, number: int, now_ms: int, limit: int) -> list[Field]:
    """Return at most `limit` expired fields, the longest expired first."""
    found: list[bytes] = []
    of_hash = _NUMBER.pack(databases.FIELD_EXPIRIES, number)
    for key, _ in databases.items(txn, of_hash):
        if _DUE.unpack_from(key, len(of_hash))[0] > now_ms or len(found) == limit:
            break
        found.append(key[len(of_hash) + _DUE.size :])
    fields = []
    for digest in found:
        stored = txn.get(prefix(number) + digest)
        assert stored is not None
        fields.append(unpack(stored))
    return fields


# -- which hashes have a field that expires


def set_expiring(txn: Txn, before: bytes, after: bytes) -> None:
    """Move a hash in the order of `expiring`: each argument is a row made by `expiring`, or empty."""
    if before:
        txn.delete(databases.EXPIRING + before)
    if after:
        txn.put(databases.EXPIRING + after, b"")


def expiring(due_ms: int, place: bytes) -> bytes:
    """Return the row of the key at this place; empty for one without expiring fields."""
    return _DUE.pack(due_ms) + place if due_ms else b""


def row_of(body: bytes, place: bytes) -> bytes:
    """Return the row of a hash with this body; empty if none of its fields expires."""
    return expiring(HASH_HEAD.unpack_from(body)[1], place)


def due(txn: Txn, now_ms: int, limit: int) -> list[bytes]:
    """Return at most `limit` rows of hashes with an expired field."""
    found: list[bytes] = []
    for key, _ in databases.items(txn, databases.EXPIRING):
        row = key[1:]
        if _DUE.unpack_from(row)[0] > now_ms or len(found) == limit:
            break
        found.append(row)
    return found


def first_due(txn: Txn) -> int:
    """Return when the first field of all hashes that stand for themselves expires; 0 if none does."""
    for key, _ in databases.items(txn, databases.EXPIRING):
        return int(_DUE.unpack_from(key, 1)[0])
    return 0


def place_of(row: bytes) -> bytes:
    """Return the place of the key that a row belongs to."""
    return row[_DUE.size :]
