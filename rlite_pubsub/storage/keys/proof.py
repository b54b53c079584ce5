"""Checks that the records of keys fit each other: spaces and their counts, expiries, the contents of large values, the
order of sorted sets; and that every number belongs to a key of its kind.

Every transaction leaves them consistent. A fault is damage, or a bug of this program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from math import copysign
from struct import Struct
from struct import error as StructError
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.commons import shard_rows
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.keys import digests, fields, garbage, key_records, members, ranks, scores, words
from rlite_pubsub.storage.keys.key_records import HASH, LIST, SET, SORTED_SET, TOPIC, KeyRecord

_NUMBER = Struct(">Q")
_LIST = Struct(">QQQ")
_SET = Struct(">QQ")
_HASH = Struct(">QQQ")
_SORTED_SET = Struct(">QQB")
_EXPIRY_BYTES = 8
_DUE = Struct(">Q")
_NUMBER_KEY_BYTES = 1 + _NUMBER.size
_WITH_DUES = 1
_WITH_MINUS_ZERO = 1
_KINDS = {
    databases.ELEMENTS: LIST,
    databases.MEMBERS: SET,
    databases.FIELDS: HASH,
    databases.FIELD_EXPIRIES: HASH,
    databases.SCORES: SORTED_SET,
    databases.ORDERS: SORTED_SET,
}
"""Whose rows these are; all others that go on with a number are a topic's."""


class Owner(NamedTuple):
    """The key that a number belongs to."""

    place: bytes
    record: KeyRecord


def faults(txn: Txn) -> Iterator[str]:
    """Yield the faults."""
    spaces = key_records.spaces(txn)
    names = Counter(space.number for space in spaces.values() if space.number)  # 0: it has never held anything
    yield from (f"space {number} belongs to {count} databases" for number, count in names.items() if count > 1)
    thrown_away, _ = _garbage(txn)
    sizes: Counter[int] = Counter()
    expiring: Counter[int] = Counter()
    for place, record in _records(txn):
        space = key_records.space_of(place)
        where = _told(place, record)
        sizes[space] += 1
        expiring[space] += bool(record.expires_ms)
        if space not in names and space not in thrown_away:
            yield f"{where}: no database has space {space}"
        if key_records.place(space, record.name) != place:
            yield f"{where} does not stand under its name's digest"
        if record.expires_ms and txn.get(databases.EXPIRIES + _DUE.pack(record.expires_ms) + place) is None:
            yield f"{where} expires, and is not in the order of expiries"
        look = _LOOKS.get(record.type)
        if look is not None and space not in thrown_away:
            try:
                yield from (f"{where} {fault}" for fault in look(txn, place, record))
            except (ValueError, LookupError, StructError) as failure:
                yield f"{where} can't be read: {failure}"
    for database, counted in spaces.items():
        if (counted.size, counted.expiring) != (sizes[counted.number], expiring[counted.number]):
            yield (
                f"database {database} counts {counted.size} keys, {counted.expiring} that expire, "
                f"and has {sizes[counted.number]}, {expiring[counted.number]}"
            )
    yield from _of_orders(txn)
    yield from _of_numbers(txn)


def owners(txn: Txn) -> Iterator[tuple[int, Owner]]:
    """Yield every number that a key has, including those of flushed spaces."""
    for place, record in _records(txn):
        if record.type in key_records.NUMBERED and (number := _NUMBER.unpack_from(record.body)[0]):
            yield number, Owner(place, record)


def _records(txn: Txn) -> Iterator[tuple[bytes, KeyRecord]]:
    for key, value in databases.items(txn, databases.KEYS):
        yield key[len(databases.KEYS) :], key_records.unpack(value)


def _told(place: bytes, record: KeyRecord) -> str:
    return f"key {record.name!r} of space {key_records.space_of(place)}"


def _garbage(txn: Txn) -> tuple[set[int], set[int]]:
    """Return the spaces and numbers that are being swept, and the numbers of topics that are on their way in."""
    found: tuple[set[int], set[int]] = (set(), set())
    for key, _ in databases.items(txn, databases.GARBAGE):
        found[key[1]].add(_NUMBER.unpack_from(key, 2)[0])
    found[garbage.TOPIC].update(shard_rows.arriving(txn))
    return found


def _of_orders(txn: Txn) -> Iterator[str]:
    """Check the orders of expiries, of keys and of first fields: each row has its key, and its record says the same."""
    for key, _ in databases.items(txn, databases.EXPIRIES):
        found = key_records.get(txn, key[1 + _EXPIRY_BYTES :])
        if found is None or found.expires_ms != _DUE.unpack_from(key, 1)[0]:
            yield f"the order of expiries has {key[1:].hex()}, and no key expires so"
    for key, _ in databases.items(txn, databases.EXPIRING):
        place = fields.place_of(key[1:])
        found = key_records.get(txn, place)
        if found is None or found.type != HASH or fields.row_of(found.body, place) != key[1:]:
            yield f"the order of expiring fields has {key[1:].hex()}, and no hash says so"


def _of_numbers(txn: Txn) -> Iterator[str]:
    """Check that each number has one key, and that every record under a number is of that key's kind, or is being
    swept."""
    kinds: dict[int, int] = {}
    for number, owner in owners(txn):
        if number in kinds:
            yield f"{_told(*owner)} has number {number}, as another key has"
        kinds[number] = owner.record.type
    last = int.from_bytes(txn.get(databases.LAST_TOPIC) or b"", "big")
    yield from (f"number {number} was given, and {last} is said to be the last" for number in kinds if number > last)
    _, swept = _garbage(txn)
    for database in garbage.OF_A_TOPIC:
        for head in databases.heads(txn, database, _NUMBER.size):
            (number,) = _NUMBER.unpack(head)
            if number and number not in swept and kinds.get(number) != _KINDS.get(database, TOPIC):
                yield f"there are rows {database!r} of number {number}, and no key of that kind has it"


# -- the contents of each kind


def _of_list(txn: Txn, place: bytes, record: KeyRecord) -> Iterator[str]:
    if not _NUMBER.unpack_from(record.body)[0]:
        words.unpack(record.body, _NUMBER.size)
        return
    number, start, stop = _LIST.unpack(record.body)
    prefix = databases.ELEMENTS + _NUMBER.pack(number)
    indexes = [_NUMBER.unpack_from(key, _NUMBER_KEY_BYTES)[0] for key, _ in databases.items(txn, prefix)]
    if indexes != list(range(start, stop)):
        yield f"has {stop - start} elements from index {start} on, and there are {len(indexes)}"


def _of_set(txn: Txn, place: bytes, record: KeyRecord) -> Iterator[str]:
    if not _NUMBER.unpack_from(record.body)[0]:
        words.unpack(record.body, _NUMBER.size)
        return
    number, count = _SET.unpack(record.body)
    yield from _of_digests(txn, members.prefix(number), count, lambda value: value)


def _of_digests(txn: Txn, prefix: bytes, count: int, name_of: Callable[[bytes], bytes]) -> Iterator[str]:
    found = 0
    for key, value in databases.items(txn, prefix):
        found += 1
        if key[len(prefix) :] != digests.digest(name_of(value)):
            yield f"has {name_of(value)!r} under the digest of another one"
    if found != count:
        yield f"counts {count} members, and has {found}"


def _of_hash(txn: Txn, place: bytes, record: KeyRecord) -> Iterator[str]:
    number, first_due_ms = fields.HASH_HEAD.unpack_from(record.body)
    row = fields.row_of(record.body, place)
    if row and txn.get(databases.EXPIRING + row) is None:
        yield "has fields that expire, and is not in their order"
    if not number:
        found = words.unpack(record.body, fields.HASH_HEAD.size)
        dues = [_DUE.unpack(due)[0] for due in found[2::3]] if record.flags & _WITH_DUES else []
        if first_due_ms != min(filter(None, dues), default=0):
            yield f"says that its first field expires at {first_due_ms}, and holds {dues}"
        return
    _, _, count = _HASH.unpack(record.body)
    yield from _of_digests(txn, fields.prefix(number), count, lambda value: fields.unpack(value).name)
    dues_of = {
        key[_NUMBER_KEY_BYTES:]: fields.unpack(value).due_ms
        for key, value in databases.items(txn, fields.prefix(number))
    }
    expiring = {_DUE.pack(due_ms) + digest for digest, due_ms in dues_of.items() if due_ms}
    of_hash = databases.FIELD_EXPIRIES + _NUMBER.pack(number)
    ordered = {key[len(of_hash) :] for key, _ in databases.items(txn, of_hash)}
    if expiring != ordered:
        yield f"has {len(expiring)} fields that expire, and their order has others ({len(expiring ^ ordered)} differ)"
    if first_due_ms != min(filter(None, dues_of.values()), default=0):
        yield f"says that its first field expires at {first_due_ms}"


def _of_sorted_set(txn: Txn, place: bytes, record: KeyRecord) -> Iterator[str]:
    if not _NUMBER.unpack_from(record.body)[0]:
        words.unpack(record.body, _NUMBER.size)
        return
    number, count, levels = _SORTED_SET.unpack(record.body)
    yield from _of_digests(txn, scores.prefix(number), count, lambda value: scores.unpack(value)[0])
    scored = [scores.unpack(value) for _, value in databases.items(txn, scores.prefix(number))]
    places = sorted(ranks.place(score, member) for member, score in scored)
    if not record.flags & _WITH_MINUS_ZERO and any(copysign(1, score) < 0 for _, score in scored if not score):
        yield "has a score of -0, and says that it has none"
    nodes = _level(txn, number, 0)
    if [place for _, stood in nodes for place in stood] != places:
        yield "has members whose ranks are those of others"
    posts = [ranks.pack_post(len(stood), bound) for bound, stood in nodes]
    yield from (f"has {fault} on level 0 of its ranks" for fault in _out_of_bounds(nodes))
    for level in range(1, levels + 1):
        above = [(bound, [ranks.unpack_post(post) for post in stood]) for bound, stood in _level(txn, number, level)]
        if [ranks.pack_post(*post) for _, stood in above for post in stood] != posts:
            yield f"has level {level} of its ranks wrong"
        yield from (
            f"has {fault} on level {level} of its ranks"
            for fault in _out_of_bounds([(bound, [place for _, place in stood]) for bound, stood in above])
        )
        posts = [ranks.pack_post(sum(count for count, _ in stood), bound) for bound, stood in above]
    if len(posts) != 1:
        yield f"has {len(posts)} nodes on the highest level of its ranks"
    beyond = [key for key, _ in databases.items(txn, databases.ORDERS + _NUMBER.pack(number))]
    if beyond and beyond[-1][_NUMBER_KEY_BYTES] > levels:
        yield f"has {levels} levels of ranks, and there are rows of level {beyond[-1][_NUMBER_KEY_BYTES]}"


def _level(txn: Txn, number: int, level: int) -> list[tuple[bytes, list[bytes]]]:
    prefix = ranks.prefix(number, level)
    return [(key[len(prefix) :], words.unpack(value, 0)) for key, value in databases.items(txn, prefix)]


def _out_of_bounds(nodes: list[tuple[bytes, list[bytes]]]) -> Iterator[str]:
    """Yield what stands in a node where it would not be looked for."""
    if nodes and nodes[0][0]:
        yield "no first node"
    ends = [bound for bound, _ in nodes[1:]]
    for (bound, stood), end in zip(nodes, [*ends, None], strict=True):
        if stood and (stood[0] < bound or (end is not None and stood[-1] >= end)):
            yield "a node with what is another one's"


_LOOKS: dict[int, Callable[[Txn, bytes, KeyRecord], Iterator[str]]] = {
    LIST: _of_list,
    SET: _of_set,
    HASH: _of_hash,
    SORTED_SET: _of_sorted_set,
}
