"""An index of events by type, so that a rare type is read without the rest.

    indexed  'Y', topic u64, 0 u8                              the last id that the index knows
    types    'Y', topic u64, 1 u8, digest (16 bytes)           ids in its rows u64, the type
    rows     'Y', topic u64, 2 u8, digest, first id (16 bytes) ids, 16 bytes each, oldest first: at most a page

The index follows the topic: it knows every entry up to and including `indexed`, whichever process appended it, and no
later one. So it needs no place in the transactions that append. Trimmed and deleted entries stay in it until it is
swept: skip an id that has no entry. The digest stands for types of any length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import EVENT_TYPES
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.journal.recording import delete_here
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

ROW_IDS = 254
"""16 bytes each: with LMDB's own few they fill a page."""
DIGEST_BYTES = 16
_TOPIC = Struct(">Q")
_COUNT = Struct(">Q")
_INDEXED, _TYPES, _ROWS = b"\0", b"\1", b"\2"


class Type(NamedTuple):
    """A type that the index has entries of."""

    digest: bytes
    entries: int
    name: bytes


def _place(topic: int, part: bytes) -> bytes:
    return EVENT_TYPES + _TOPIC.pack(topic) + part


def digest(name: bytes) -> bytes:
    """Return the digest that a type's rows stand under."""
    return blake2b(name, digest_size=DIGEST_BYTES).digest()


def indexed(txn: Txn, topic: int) -> Id:
    """Return the last id that the index knows."""
    found = txn.get(_place(topic, _INDEXED))
    return entry_ids.MIN if found is None else entry_ids.unpack(found)


def extend(txn: Txn, topic: int, ids_by_type: Mapping[bytes, Sequence[bytes]], last: Id) -> None:
    """Add entries that follow the known ones, up to and including `last`: type -> packed ids, oldest first."""
    for name, ids in ids_by_type.items():
        of_type = digest(name)
        _append(txn, _place(topic, _ROWS + of_type), ids)
        place = _place(topic, _TYPES + of_type)
        found = txn.get(place)
        count = 0 if found is None else _COUNT.unpack_from(found)[0]
        txn.put(place, _COUNT.pack(count + len(ids)) + name)
    txn.put(_place(topic, _INDEXED), entry_ids.pack(last))


def _append(txn: Txn, of_type: bytes, ids: Sequence[bytes]) -> None:
    done = 0
    row = _last_row(txn, of_type)
    if row is not None:
        key, value = row
        done = min(ROW_IDS - len(value) // entry_ids.BYTES, len(ids))
        if done:
            txn.put(key, b"".join((value, *ids[:done])))
    for start in range(done, len(ids), ROW_IDS):
        txn.put(of_type + ids[start], b"".join(ids[start : start + ROW_IDS]))


def _last_row(txn: Txn, of_type: bytes) -> tuple[bytes, bytes] | None:
    cursor = txn.cursor()
    found = cursor.set_range(of_type + entry_ids.pack(entry_ids.MAX))
    if not (cursor.prev() if found else cursor.last()):
        return None
    key, value = cursor.item()
    return (key, value) if key.startswith(of_type) else None


def types(txn: Txn, topic: int, start: bytes = b"") -> Iterator[Type]:
    """Yield all types, in the order of their digests, from one on. Change nothing meanwhile."""
    prefix = _place(topic, _TYPES)
    for key, value in databases.items_from(txn, prefix, prefix + start):
        yield Type(key[len(prefix) :], _COUNT.unpack_from(value)[0], value[_COUNT.size :])


def after(txn: Txn, topic: int, of_type: bytes, entry_id: Id, limit: int) -> list[bytes]:
    """Return about `limit` packed ids of a type (by its digest) that come after an id, oldest first."""
    rows = _place(topic, _ROWS + of_type)
    packed = entry_ids.pack(entry_id)
    cursor = txn.cursor()
    found = cursor.set_range(rows + packed)
    if not found or cursor.key() != rows + packed:  # the row before may hold it, if it is this type's
        is_back = cursor.prev() if found else cursor.last()
        found = cursor.set_range(rows + packed) if not is_back else cursor.key().startswith(rows) or cursor.next()
    ids: list[bytes] = []
    while found and len(ids) < limit:
        key, value = cursor.item()
        if not key.startswith(rows):
            break
        row = [value[at : at + entry_ids.BYTES] for at in range(0, len(value), entry_ids.BYTES)]
        ids += row if row[0] > packed else [each for each in row if each > packed]
        found = cursor.next()
    return ids


def sweep(txn: Txn, topic: int, start: bytes, trimmed: Id, limit: int) -> bytes:
    """Remove the rows of at most `limit` types, from a digest on, whose entries are all gone, `limit` rows at most; a
    type without rows is removed. Returns where to go on, empty at the end."""
    packed = entry_ids.pack(trimmed)
    prefix = _place(topic, _TYPES)
    found: list[Type] = []
    for each in types(txn, topic, start):
        if len(found) == limit:
            break
        found.append(each)
    budget = limit
    for each in found:
        rows = _place(topic, _ROWS + each.digest)
        cursor = txn.cursor()
        removed, more = 0, cursor.set_range(rows)
        while more and budget and cursor.key().startswith(rows) and cursor.value()[-entry_ids.BYTES :] <= packed:
            removed += len(cursor.value()) // entry_ids.BYTES
            budget -= 1
            more = delete_here(txn, cursor)  # which leaves it at the next one
        if removed == each.entries:
            txn.delete(prefix + each.digest)
        elif removed:
            txn.put(prefix + each.digest, _COUNT.pack(each.entries - removed) + each.name)
        if not budget:
            return each.digest
    return found[-1].digest + b"\0" if len(found) == limit else b""
