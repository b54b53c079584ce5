"""Publications of a topic known by their producers' ids, so that one that is sent again is not added again (XADD's IDMP
and IDMPAUTO).

    state      'i', topic u64, 0 u8                                          seconds u32, most u32, added u64,
                                                                             duplicates u64, producers u64, known u64,
                                                                             next serial u64
    producers  'i', topic u64, 1 u8, producer (16 bytes)                     known u32
    known      'i', topic u64, 2 u8, producer, publication (16 bytes each)   serial u64, id (16 bytes)
    by age     'i', topic u64, 3 u8, serial u64                              noted ms u64, producer
    in turn    'i', topic u64, 4 u8, producer, serial u64                    publication

Producers and publications stand under digests of their names. The five kinds of rows change together, here.
"""

from __future__ import annotations

from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import PUBLICATIONS
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

DIGEST_BYTES = 16
_TOPIC = Struct(">Q")
_STATE = Struct(">IIQQQQQ")
_COUNT = Struct(">I")
_SERIAL = Struct(">Q")
_OF_STATE, _PRODUCERS, _KNOWN, _BY_AGE, _IN_TURN = (bytes([kind]) for kind in range(5))


class PublicationState(NamedTuple):
    """How long, and how many, publications of each producer are known; and the counters of all."""

    seconds: int = 100
    most: int = 100
    added: int = 0
    duplicates: int = 0
    producers: int = 0
    known: int = 0
    next_serial: int = 0


class Known(NamedTuple):
    """A known publication."""

    producer: bytes
    publication: bytes
    serial: int
    entry_id: Id
    noted_ms: int


def digest(name: bytes) -> bytes:
    """Return the digest that a name stands under."""
    return blake2b(name, digest_size=DIGEST_BYTES).digest()


def digest_of_fields(words: tuple[bytes, ...]) -> bytes:
    """Return the digest of an entry's fields and values, in whichever order they come."""
    pairs = sorted(zip(words[::2], words[1::2], strict=True))
    text = b"".join([b"%d:%b%d:%b" % (len(field), field, len(value), value) for field, value in pairs])
    return blake2b(text, digest_size=DIGEST_BYTES, person=b"fields").digest()


def state(txn: Txn, topic: int) -> PublicationState | None:
    """Return the state; None if nothing was ever known."""
    found = txn.get(_prefix(topic, _OF_STATE))
    return None if found is None else PublicationState(*_STATE.unpack(found))


def put_state(txn: Txn, topic: int, record: PublicationState) -> None:
    txn.put(_prefix(topic, _OF_STATE), _STATE.pack(*record))


def find(txn: Txn, topic: int, producer: bytes, publication: bytes) -> Known | None:
    found = txn.get(_prefix(topic, _KNOWN) + producer + publication)
    if found is None:
        return None
    serial = _SERIAL.unpack_from(found)[0]
    noted = txn.get(_prefix(topic, _BY_AGE) + found[: _SERIAL.size])
    assert noted is not None
    entry_id = entry_ids.unpack(found, _SERIAL.size)
    return Known(producer, publication, serial, entry_id, _SERIAL.unpack_from(noted)[0])


def oldest(txn: Txn, topic: int) -> Known | None:
    """Return the publication known for the longest time."""
    prefix = _prefix(topic, _BY_AGE)
    found = next(databases.items(txn, prefix), None)
    if found is None:
        return None
    producer = found[1][_SERIAL.size :]
    publication = txn.get(_prefix(topic, _IN_TURN) + producer + found[0][len(prefix) :])
    assert publication is not None
    return find(txn, topic, producer, publication)


def oldest_of(txn: Txn, topic: int, producer: bytes) -> Known | None:
    """Like `oldest`, for one producer."""
    found = next(databases.items(txn, _prefix(topic, _IN_TURN) + producer), None)
    return None if found is None else find(txn, topic, producer, found[1])


def count_of(txn: Txn, topic: int, producer: bytes) -> int:
    """Return how many of a producer's are known."""
    found = txn.get(_prefix(topic, _PRODUCERS) + producer)
    return 0 if found is None else int(_COUNT.unpack(found)[0])


def add(txn: Txn, topic: int, record: Known) -> None:
    """Add a publication. The caller counts `PublicationState.known` and `producers`."""
    serial = _SERIAL.pack(record.serial)
    known = _prefix(topic, _KNOWN) + record.producer + record.publication
    txn.put(known, serial + entry_ids.pack(record.entry_id))
    txn.put(_prefix(topic, _BY_AGE) + serial, _SERIAL.pack(record.noted_ms) + record.producer)
    txn.put(_prefix(topic, _IN_TURN) + record.producer + serial, record.publication)
    _count(txn, topic, record.producer, 1)


def remove(txn: Txn, topic: int, record: Known) -> None:
    """Forget a publication."""
    serial = _SERIAL.pack(record.serial)
    txn.delete(_prefix(topic, _KNOWN) + record.producer + record.publication)
    txn.delete(_prefix(topic, _BY_AGE) + serial)
    txn.delete(_prefix(topic, _IN_TURN) + record.producer + serial)
    _count(txn, topic, record.producer, -1)


def remove_all(txn: Txn, topic: int) -> None:
    """Forget all publications; the counters stay."""
    for kind in (_PRODUCERS, _KNOWN, _BY_AGE, _IN_TURN):
        databases.delete_all(txn, _prefix(topic, kind))


def copy(txn: Txn, topic: int, to: int) -> None:
    """Copy everything to another topic, which has none."""
    databases.copy_all(txn, PUBLICATIONS + _TOPIC.pack(topic), PUBLICATIONS + _TOPIC.pack(to))


def _count(txn: Txn, topic: int, producer: bytes, more: int) -> None:
    key = _prefix(topic, _PRODUCERS) + producer
    count = count_of(txn, topic, producer) + more
    if count:
        txn.put(key, _COUNT.pack(count))
    else:
        txn.delete(key)


def _prefix(topic: int, kind: bytes) -> bytes:
    return PUBLICATIONS + _TOPIC.pack(topic) + kind
