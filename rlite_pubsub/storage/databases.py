"""The first byte of a key says which database it belongs to: FORMAT.md's table, and the walks within one of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rlite_pubsub.storage.environment import Cursor, Txn

# Their types are said, for the compiler: it comes to modules that name them before it comes to this one.
FORMAT: bytes = b"\x00format"
BOOT: bytes = b"\x00boot"
ROUTES_VERSION: bytes = b"\x00routes"
LAST_SEQUENCE: bytes = b"\x00sequence"
OLD_READERS: bytes = b"\x00reader"

CHANNELS: bytes = b"c"
PATTERNS: bytes = b"p"
SHARDS: bytes = b"s"
WAITS: bytes = b"w"
TRACKERS: bytes = b"k"
SUBSCRIPTIONS: bytes = b"n"
SUBSCRIBERS: bytes = b"u"
MESSAGES: bytes = b"m"
REFERENCES: bytes = b"r"
MAILBOXES: bytes = b"b"
DURABLES: bytes = b"d"
ATTACHMENTS: bytes = b"a"
LOSSES: bytes = b"g"
ALLOWANCES: bytes = b"l"
OVERFLOWS: bytes = b"o"

COMMONS_VERSION: bytes = b"\x00commons"
COLD_HOME: bytes = b"\x00cold"
LAST_TOPIC: bytes = b"\x00topic"
LAST_SPACE: bytes = b"\x00space"
SPACES: bytes = b"D"
KEYS: bytes = b"K"
EXPIRIES: bytes = b"E"
ENTRIES: bytes = b"t"
GROUPS: bytes = b"G"
CONSUMERS: bytes = b"C"
PENDING: bytes = b"P"
RELEASED: bytes = b"R"
IN_FLIGHT: bytes = b"I"
DEFERRED: bytes = b"F"
DEADLINES: bytes = b"Z"
TOPIC_SETTINGS: bytes = b"S"
TRIM_MARKS: bytes = b"T"
ELEMENTS: bytes = b"L"
MEMBERS: bytes = b"M"
FIELDS: bytes = b"H"
FIELD_EXPIRIES: bytes = b"N"
EXPIRING: bytes = b"J"
SCORES: bytes = b"e"
RANKS: bytes = b"q"
GARBAGE: bytes = b"X"
EVENT_TYPES: bytes = b"Y"
STAGES: bytes = b"A"
MARKERS: bytes = b"B"
COLD: bytes = b"O"
SETTINGS: bytes = b"W"
USERS: bytes = b"U"
CHANGED_KEYS: bytes = b"j"
TOMBSTONES: bytes = b"V"
DROPPED_BLOCKS: bytes = b"Q"

_PAST_ALL = b"\xff" * 64
_COPIED_AT_ONCE = 256


def items(txn: Txn, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Every key with this prefix, in order. What is under way must not be changed: collect first."""
    return items_from(txn, prefix, prefix)


def items_from(txn: Txn, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    """As `items`, from a key on."""
    cursor = txn.cursor()
    if cursor.set_range(start):
        for key, value in cursor.iternext():
            if not key.startswith(prefix):
                return
            yield key, value


def after(prefix: bytes) -> bytes:
    """Above every key with this prefix, and at or below every other key that is above them."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def last_up_to(txn: Txn, prefix: bytes, wanted: bytes) -> tuple[bytes, bytes] | None:
    """The last record with this prefix whose key is at most `wanted`, which has the prefix, too."""
    cursor = txn.cursor()
    return cursor.item() if seek_back(cursor, prefix, wanted) else None


def seek_back(cursor: Cursor, prefix: bytes, wanted: bytes) -> bool:
    """Put the cursor where `last_up_to` looks; False if nothing is there, and then it stands anywhere."""
    if not cursor.set_range(wanted):
        return cursor.last() and cursor.key().startswith(prefix)
    return cursor.key() == wanted or (cursor.prev() and cursor.key().startswith(prefix))


def delete_all(txn: Txn, prefix: bytes) -> None:
    """Remove every key with this prefix."""
    cursor = txn.cursor()
    found = cursor.set_range(prefix)
    while found and cursor.key().startswith(prefix):
        found = cursor.delete()


def copy_all(txn: Txn, prefix: bytes, to: bytes) -> None:
    """Every record with this prefix once more, under another one, which does not begin with it."""
    at = prefix
    while found := list(islice(items_from(txn, prefix, at), _COPIED_AT_ONCE)):
        for key, value in found:
            txn.put(to + key[len(prefix) :], value)
        at = found[-1][0] + b"\0"


def heads(txn: Txn, prefix: bytes, head_bytes: int) -> Iterator[bytes]:
    """The different `head_bytes` that follow the prefix, skipping over what follows each of them."""
    cursor = txn.cursor()
    end = len(prefix) + head_bytes
    found = cursor.set_range(prefix)
    while found and (key := cursor.key()).startswith(prefix):
        yield key[len(prefix) : end]
        found = cursor.set_range(key[:end] + _PAST_ALL)
