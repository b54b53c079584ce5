"""The first byte of a key says which database it belongs to: this is FORMAT.md's table, with the walks within one of
them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from rlite_pubsub.storage.environment import Cursor, Txn
from rlite_pubsub.storage.journal.recording import delete_here

# Their types are written out for the compiler, which sees modules that name them before this one.
FORMAT: Final[bytes] = b"\x00format"
BOOT: Final[bytes] = b"\x00boot"
ROUTES_VERSION: Final[bytes] = b"\x00routes"
LAST_SEQUENCE: Final[bytes] = b"\x00sequence"
UPGRADE: Final[bytes] = b"\x00upgrade"
OLD_READERS: Final[bytes] = b"\x00reader"
INCIDENTS: Final[bytes] = b"\x00incident"

CHANNELS: Final[bytes] = b"c"
PATTERNS: Final[bytes] = b"p"
SHARDS: Final[bytes] = b"s"
WAITS: Final[bytes] = b"w"
TRACKERS: Final[bytes] = b"k"
SUBSCRIPTIONS: Final[bytes] = b"n"
SUBSCRIBERS: Final[bytes] = b"u"
MESSAGES: Final[bytes] = b"m"
REFERENCES: Final[bytes] = b"r"
MAILBOXES: Final[bytes] = b"b"
DURABLES: Final[bytes] = b"d"
ATTACHMENTS: Final[bytes] = b"a"
LOSSES: Final[bytes] = b"g"
ALLOWANCES: Final[bytes] = b"l"
OVERFLOWS: Final[bytes] = b"o"
CLIENTS_ASKED: Final[bytes] = b"\x00clients"
CLIENT_REPORTS: Final[bytes] = b"h"
CLIENT_KILLS: Final[bytes] = b"x"

COMMONS_VERSION: Final[bytes] = b"\x00commons"
FUNCTIONS_VERSION: Final[bytes] = b"\x00functions"
COLD_HOME: Final[bytes] = b"\x00cold"
REPLICA: Final[bytes] = b"\x00replica"
IDENTITY: Final[bytes] = b"\x00identity"
MEMBER: Final[bytes] = b"\x00member"
SHARD_DIRECTORY: Final[bytes] = b"\x00shards"
LEAVING: Final[bytes] = b"\x00leaving"
LINKS: Final[bytes] = b"y"
STREAM: Final[bytes] = b"\x00stream"
LAST_TOPIC: Final[bytes] = b"\x00topic"
LAST_SPACE: Final[bytes] = b"\x00space"
SPACES: Final[bytes] = b"D"
KEYS: Final[bytes] = b"K"
EXPIRIES: Final[bytes] = b"E"
ENTRIES: Final[bytes] = b"t"
GROUPS: Final[bytes] = b"G"
CONSUMERS: Final[bytes] = b"C"
PENDING: Final[bytes] = b"P"
RELEASED: Final[bytes] = b"R"
IN_FLIGHT: Final[bytes] = b"I"
DEFERRED: Final[bytes] = b"F"
DEADLINES: Final[bytes] = b"Z"
TOPIC_SETTINGS: Final[bytes] = b"S"
TRIM_MARKS: Final[bytes] = b"T"
PUBLICATIONS: Final[bytes] = b"i"
ELEMENTS: Final[bytes] = b"L"
MEMBERS: Final[bytes] = b"M"
FIELDS: Final[bytes] = b"H"
FIELD_EXPIRIES: Final[bytes] = b"N"
EXPIRING: Final[bytes] = b"J"
SCORES: Final[bytes] = b"e"
ORDERS: Final[bytes] = b"z"
GARBAGE: Final[bytes] = b"X"
EVENT_TYPES: Final[bytes] = b"Y"
STAGES: Final[bytes] = b"A"
MARKERS: Final[bytes] = b"B"
COLD: Final[bytes] = b"O"
SETTINGS: Final[bytes] = b"W"
USERS: Final[bytes] = b"U"
FUNCTION_LIBRARIES: Final[bytes] = b"f"
CHANGED_KEYS: Final[bytes] = b"j"
TOMBSTONES: Final[bytes] = b"V"
DROPPED_BLOCKS: Final[bytes] = b"Q"
ARRIVING: Final[bytes] = b"v"
STREAM_ROWS: Final[bytes] = b"0"
REPLICAS: Final[bytes] = b"1"
SEGMENTS: Final[bytes] = b"2"

_PAST_ALL: Final[bytes] = b"\xff" * 64
_COPIED_AT_ONCE: Final = 256


def items(txn: Txn, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield every key with this prefix, in order. Do not change these records meanwhile: collect first."""
    return items_from(txn, prefix, prefix)


def items_from(txn: Txn, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Like `items`, from a key on."""
    cursor = txn.cursor()
    if cursor.set_range(start):
        for key in cursor.iternext(values=False):  # the value of the row behind the last one may be large
            if not key.startswith(prefix):
                return
            yield key, cursor.value()


def after(prefix: bytes) -> bytes:
    """Return a key above every key with this prefix, and at or below every other key above them."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")


def last_up_to(txn: Txn, prefix: bytes, wanted: bytes) -> tuple[bytes, bytes] | None:
    """Return the last record with this prefix whose key is at most `wanted`, which has the prefix, too."""
    cursor = txn.cursor()
    return cursor.item() if seek_back(cursor, prefix, wanted) else None


def seek_back(cursor: Cursor, prefix: bytes, wanted: bytes) -> bool:
    """Put the cursor where `last_up_to` looks; if nothing is there, return False, with the cursor anywhere."""
    if not cursor.set_range(wanted):
        return cursor.last() and cursor.key().startswith(prefix)
    return cursor.key() == wanted or (cursor.prev() and cursor.key().startswith(prefix))


def delete_all(txn: Txn, prefix: bytes) -> None:
    """Remove every key with this prefix."""
    cursor = txn.cursor()
    found = cursor.set_range(prefix)
    while found and cursor.key().startswith(prefix):
        found = delete_here(txn, cursor)


def copy_all(txn: Txn, prefix: bytes, to: bytes) -> None:
    """Copy every record with this prefix to another prefix, which does not begin with this one."""
    at = prefix
    while found := list(islice(items_from(txn, prefix, at), _COPIED_AT_ONCE)):
        for key, value in found:
            txn.put(to + key[len(prefix) :], value)
        at = found[-1][0] + b"\0"


def heads(txn: Txn, prefix: bytes, head_bytes: int) -> Iterator[bytes]:
    """Yield the distinct `head_bytes` that follow the prefix, skipping what follows each of them."""
    cursor = txn.cursor()
    end = len(prefix) + head_bytes
    found = cursor.set_range(prefix)
    while found and (key := cursor.key()).startswith(prefix):
        yield key[len(prefix) : end]
        found = cursor.set_range(key[:end] + _PAST_ALL)
