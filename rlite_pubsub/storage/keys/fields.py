"""What large hashes hold: one record for each field, under its digest (digests.py); and which fields expire, and when.

    fields          'H', number u64, digest (16 bytes)                due ms u64 (0: never), length of the field u32,
                                                                      the field, its value
    field expiries  'N', number u64, due ms u64, digest (16 bytes)    empty
    expiring        'J', due ms u64, space u32, digest (16 bytes)     empty: so the first field of the key at this place

Of a small hash, whose fields stand in the record of its key, there is no more than its row in `expiring`.
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
"""With which the body of a hash's key begins: its number, and when its first field expires."""


class Field(NamedTuple):
    """One of a hash's."""

    name: bytes
    value: bytes
    due_ms: int
    """When it expires; 0: never."""


class HeldField:
    """A field in memory, and where it stands."""

    __slots__ = ("due_ms", "key", "value")

    def __init__(self, key: bytes, value: bytes, due_ms: int) -> None:
        self.key = key
        self.value = value
        self.due_ms = due_ms


def prefix(number: int) -> bytes:
    """With which the keys of a hash's fields begin."""
    return _NUMBER.pack(databases.FIELDS, number)


def unpack(stored: bytes) -> Field:
    """What a record holds."""
    due_ms, length = _VALUE.unpack_from(stored)
    end = _VALUE.size + length
    return Field(stored[_VALUE.size : end], stored[end:], due_ms)


def key(number: int, name: bytes) -> bytes:
    """Where a field stands."""
    return _pack_number(databases.FIELDS, number) + digests.digest(name)


def pack(name: bytes, value: bytes, due_ms: int) -> bytes:
    """The record of a field."""
    return _field(name, value, due_ms)


def set_due(txn: Txn, number: int, key: bytes, before_ms: int, after_ms: int) -> None:
    """Move the field that stands under this key in the order of its hash's expiries; 0 is never."""
    if before_ms == after_ms:
        return
    of_hash = _NUMBER.pack(databases.FIELD_EXPIRIES, number)
    digest = key[_NUMBER.size :]
    if before_ms:
        txn.delete(of_hash + _DUE.pack(before_ms) + digest)
    if after_ms:
        txn.put(of_hash + _DUE.pack(after_ms) + digest, b"")


def walk(txn: Txn, number: int) -> Iterator[Field]:
    """Every field. Change nothing meanwhile."""
    return map(unpack, digests.walk(txn, prefix(number)))


def first_due_ms(txn: Txn, number: int) -> int:
    """When the first of the fields expires; 0: none does."""
    of_hash = _NUMBER.pack(databases.FIELD_EXPIRIES, number)
    for key, _ in databases.items(txn, of_hash):
        return int(_DUE.unpack_from(key, len(of_hash))[0])
    return 0


def over(txn: Txn, number: int, now_ms: int, limit: int) -> list[Field]:
    """At most `limit` fields whose time is over, the longest over first."""
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
    """Move a hash in the order of `expiring`; what `expiring` has made, or nothing."""
    if before:
        txn.delete(databases.EXPIRING + before)
    if after:
        txn.put(databases.EXPIRING + after, b"")


def expiring(due_ms: int, place: bytes) -> bytes:
    """The row of the key at this place; nothing for one that has no field that expires."""
    return _DUE.pack(due_ms) + place if due_ms else b""


def row_of(body: bytes, place: bytes) -> bytes:
    """The row of a hash with this body; nothing where none of its fields expires."""
    return expiring(HASH_HEAD.unpack_from(body)[1], place)


def due(txn: Txn, now_ms: int, limit: int) -> list[bytes]:
    """At most `limit` rows of hashes with a field whose time is over."""
    found: list[bytes] = []
    for key, _ in databases.items(txn, databases.EXPIRING):
        row = key[1:]
        if _DUE.unpack_from(row)[0] > now_ms or len(found) == limit:
            break
        found.append(row)
    return found


def place_of(row: bytes) -> bytes:
    """The place of the key to which a row belongs."""
    return row[_DUE.size :]
