"""The keys of the 16 (or more) databases, of all types; and when they expire.

    spaces    'D', database u16                  space u32, keys u64, keys with an expiry u64
    keys      'K', space u32, digest (16 bytes)  type u8, flags u8, expires ms u64 (0: never), modified u64,
                                                 name length u32, name, body
    expiries  'E', expires ms u64, space u32, digest

A key stands under the digest of its name, so that SCAN's cursor can be a place among digests, names of any length are
alike, and RANDOMKEY is a look-up. A database is a space: flushing gives it a new one, swapping two databases swaps
their spaces; what stands in a space that no database has any more is garbage (garbage.py). `modified` tells who wrote
the record, for WATCH over processes: the id of the transaction, and in its lowest 16 bits which one of the turns that
share that transaction (journal/shared_commit.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import Final, NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import key_bytes

STRING: Final = 1
TOPIC: Final = 2
LIST: Final = 3
SET: Final = 4
HASH: Final = 5
SORTED_SET: Final = 6
NUMBERED: Final = frozenset((TOPIC, LIST, SET, HASH, SORTED_SET))
"""Types whose bodies begin with a number, under which their contents stand; 0: they stand in the body."""

DIGEST_BYTES: Final = key_bytes.DIGEST_BYTES
_digest: Final = key_bytes.digest
MOST_DATABASES: Final = 1 << 16
_DATABASE: Final = Struct(">H")
_SPACE: Final = Struct(">I")
_SPACE_RECORD: Final = Struct(">IQQ")
_HEAD: Final = key_bytes.KEY_HEAD
_EXPIRES_AND_LENGTH: Final = Struct(">xxQ8xI")
"""Of that head."""
pack: Final = key_bytes.key_record
"""Returns the record of a key: its type, its flags, when it expires, its last transaction, its name and body."""
_EXPIRY: Final = Struct(">Q")
TURN_BITS: Final = 16
"""How many bits of `modified` say which turn of its transaction wrote a record."""


def transaction_of(modified: int) -> int:
    """Return the transaction that wrote a record."""
    return modified >> TURN_BITS


class Space:
    """A database's present space, and its counts."""

    __slots__ = ("expiring", "number", "size")

    def __init__(self, number: int, size: int, expiring: int) -> None:
        self.number = number
        self.size = size
        self.expiring = expiring

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.counts() == other.counts()

    def __hash__(self) -> int:
        return hash(self.number)

    def counts(self) -> tuple[int, int, int]:
        """Return what is stored of it."""
        return self.number, self.size, self.expiring


class KeyRecord(NamedTuple):
    """A key's record."""

    type: int
    flags: int
    expires_ms: int
    modified: int
    name: bytes
    body: bytes


def place(space: int, name: bytes) -> bytes:
    """Return where a name stands: space and digest."""
    return _SPACE.pack(space) + _digest(name)


def space(txn: Txn, database: int) -> Space:
    """Return the database's space; number 0 for one that has never held anything."""
    found = txn.get(databases.SPACES + _DATABASE.pack(database))
    return Space(*_SPACE_RECORD.unpack(found)) if found is not None else Space(0, 0, 0)


def put_space(txn: Txn, database: int, record: Space) -> None:
    txn.put(databases.SPACES + _DATABASE.pack(database), _SPACE_RECORD.pack(*record.counts()))


def spaces(txn: Txn) -> dict[int, Space]:
    """Return the spaces of all databases that have ever held something."""
    return {
        _DATABASE.unpack_from(key, 1)[0]: Space(*_SPACE_RECORD.unpack(value))
        for key, value in databases.items(txn, databases.SPACES)
    }


def new_space(txn: Txn) -> int:
    """Return a number that no database has ever had."""
    return _next(txn, databases.LAST_SPACE)


def new_topic(txn: Txn) -> int:
    """Return a number that no topic has ever had."""
    return _next(txn, databases.LAST_TOPIC)


def _next(txn: Txn, counter: bytes) -> int:
    number = int.from_bytes(txn.get(counter) or b"", "big") + 1
    txn.put(counter, number.to_bytes(8, "big"))
    return number


def row(place: bytes) -> bytes:
    """Return the key of a key's record."""
    return databases.KEYS + place


def get(txn: Txn, place: bytes) -> KeyRecord | None:
    value = txn.get(row(place))
    return unpack(value) if value is not None else None


def put(txn: Txn, place: bytes, value: bytes) -> None:
    """Write a key; `value` is packed."""
    txn.put(row(place), value)


def unpack(value: bytes) -> KeyRecord:
    type_, flags, expires_ms, modified, length = _HEAD.unpack_from(value)
    end = _HEAD.size + length
    return KeyRecord(type_, flags, expires_ms, modified, value[_HEAD.size : end], value[end:])


def head(value: bytes) -> tuple[int, int, bytes]:
    """Return (type, expires ms, name) without the body, which may be large."""
    type_, _, expires_ms, _, length = _HEAD.unpack_from(value)
    return type_, expires_ms, value[_HEAD.size : _HEAD.size + length]


def walk(txn: Txn, space: int, digest: bytes = b"") -> Iterator[tuple[bytes, int, int, bytes]]:
    """Yield (digest, type, expires ms, name) of the keys of a space, from this digest on. Change nothing meanwhile."""
    of_space = databases.KEYS + _SPACE.pack(space)
    cursor = txn.cursor()
    if cursor.set_range(of_space + digest):
        for key in cursor.iternext(values=False):
            if not key.startswith(of_space):
                return
            yield key[len(of_space) :], *head(cursor.value())


def run(txn: Txn, space: int, digest: bytes, count: int, now_ms: int) -> list[tuple[bytes, int]]:
    """Return (name, expires ms) of those of the next `count` keys of a space, from this digest on, that have not
    expired."""
    of_space = databases.KEYS + _SPACE.pack(space)
    found: list[tuple[bytes, int]] = []
    cursor = txn.cursor()
    if cursor.set_range(of_space + digest):
        for key in islice(cursor.iternext(values=False), count):
            if not key.startswith(of_space):
                break
            value = cursor.value()
            expires_ms, length = _EXPIRES_AND_LENGTH.unpack_from(value)
            if not expires_ms or expires_ms > now_ms:
                found.append((value[_HEAD.size : _HEAD.size + length], expires_ms))
    return found


def set_expiry(txn: Txn, place: bytes, before_ms: int, after_ms: int) -> None:
    """Move a key in the order of expiries; 0 is never."""
    if before_ms:
        txn.delete(databases.EXPIRIES + _EXPIRY.pack(before_ms) + place)
    if after_ms:
        txn.put(databases.EXPIRIES + _EXPIRY.pack(after_ms) + place, b"")


def expired(txn: Txn, now_ms: int, limit: int) -> list[tuple[int, bytes]]:
    """Return (when, place) of at most `limit` expired keys, the longest expired first."""
    found: list[tuple[int, bytes]] = []
    for when, place in expiring_from(txn, 0):
        if when > now_ms or len(found) == limit:
            break
        found.append((when, place))
    return found


def first_expiry(txn: Txn) -> int:
    """Return when the first key of all databases expires; 0 if none does."""
    for when, _ in expiring_from(txn, 0):
        return when
    return 0


def expiry_range(txn: Txn) -> tuple[int, int] | None:
    """Return when the first and the last key of all databases expire; None if none does."""
    cursor = txn.cursor()
    if not cursor.set_range(databases.EXPIRIES) or not cursor.key().startswith(databases.EXPIRIES):
        return None
    first = _EXPIRY.unpack_from(cursor.key(), 1)[0]
    found = databases.seek_back(cursor, databases.EXPIRIES, databases.after(databases.EXPIRIES))
    return first, _EXPIRY.unpack_from(cursor.key(), 1)[0] if found else first


def expiring_from(txn: Txn, when_ms: int, place: bytes = b"") -> Iterator[tuple[int, bytes]]:
    """Yield (when, place) of the keys that expire, in the order of expiries, from there on. Change nothing
    meanwhile."""
    for key, _ in databases.items_from(txn, databases.EXPIRIES, databases.EXPIRIES + _EXPIRY.pack(when_ms) + place):
        yield _EXPIRY.unpack_from(key, 1)[0], key[1 + _EXPIRY.size :]


def space_of(place: bytes) -> int:
    return int(_SPACE.unpack_from(place)[0])
