"""All of a topic's records beside its key, row by row: for bringing it to another store as it is.

A row is known by its database and what stands behind the topic's number there, which is another one in each store:

    +---------------------+------------------------------+
    | database (1 byte)   | the rest of the key          |
    +---------------------+------------------------------+

Rows that say where the topic's key stands, and the orders of what is due, are rebuilt where it arrives (`place`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import deadlines, topic_settings
from rlite_pubsub.storage.topics.deadlines import GroupRow

DATABASES: Final = (
    databases.ENTRIES,
    databases.EVENT_TYPES,
    databases.GROUPS,
    databases.CONSUMERS,
    databases.PENDING,
    databases.RELEASED,
    databases.IN_FLIGHT,
    databases.DEFERRED,
    databases.DEADLINES,
    databases.TOPIC_SETTINGS,
    databases.TRIM_MARKS,
    databases.PUBLICATIONS,
    databases.SEGMENTS,
)
COLD_DATABASES: Final = (databases.TOMBSTONES, databases.COLD)
"""What there is of blocks beside the blocks themselves: what is deleted in them, and the state."""
_ORDER: Final = (*DATABASES, *COLD_DATABASES)
_COLD_STATE: Final = databases.COLD + cold_blocks.STATES
_NUMBER = Struct(">Q")
_GROUP = Struct(">I")


def rows(txn: Txn, topic: int, after: bytes = b"", *, with_cold: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """Yield (row, value), in order, after this row; with what there is of blocks beside them, if that is wanted.
    Change nothing meanwhile."""
    number = _NUMBER.pack(topic)
    for database in _ORDER if with_cold else DATABASES:
        if after[:1] and _ORDER.index(database) < _ORDER.index(after[:1]):
            continue
        prefix = database + number
        start = prefix + after[1:] + b"\0" if after[:1] == database else prefix
        for key, value in databases.items_from(txn, prefix, start):
            row = database + key[len(prefix) :]
            if database == databases.COLD and row != _COLD_STATE:
                return  # the blocks are behind it
            yield row, value


def put(txn: Txn, topic: int, found: Iterable[tuple[bytes, bytes]]) -> None:
    """Write rows of another store under this topic's number."""
    number = _NUMBER.pack(topic)
    for row, value in found:
        txn.put(row[:1] + number + row[1:], value)


def remove(txn: Txn, topic: int, gone: Iterable[bytes]) -> None:
    """Remove rows that are gone from the other store."""
    number = _NUMBER.pack(topic)
    for row in gone:
        txn.delete(row[:1] + number + row[1:])


def is_row(row: bytes) -> bool:
    """Return whether it can be a row."""
    return row == _COLD_STATE or (row[:1] in _ORDER and row[:1] != databases.COLD)


def place(txn: Txn, topic: int, at: bytes) -> None:
    """Finish a topic whose rows are all there, and whose key will stand at this place: what is due there is due in this
    store, too."""
    row = deadlines.topic_row(txn, topic)
    if row is not None:
        prefix = databases.DEADLINES + _NUMBER.pack(topic)
        groups = [_GROUP.unpack_from(key, len(prefix))[0] for key, _ in databases.items(txn, prefix)]
        found = [(group, deadlines.group_row(txn, topic, group)) for group in groups if group]
        databases.delete_all(txn, prefix)
        deadlines.put_topic(txn, topic, row._replace(place=at))
        for group, of_group in found:
            assert isinstance(of_group, GroupRow)
            deadlines.put_group(txn, topic, at, group, of_group)
    settings = topic_settings.get(txn, topic)
    if settings is not None:
        txn.delete(databases.TOPIC_SETTINGS + _NUMBER.pack(topic))
        topic_settings.put(txn, topic, settings._replace(place=at), None)
