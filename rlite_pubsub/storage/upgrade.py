"""Upgrading a data.mdb of an older format: the first process that opens the store while no other has it open rewrites
it before anybody reads it.

Format 3 had the order of large sorted sets in a record for each member, and counts in a list with skips. They are moved
into the nodes of keys/ranks.py a piece at a time, each piece a transaction of its own, so that neither the store nor
memory has to have room for all of it twice. A store whose upgrade was broken off has the new format and a mark, by
which the next process that opens it goes on.

    key \0 "upgrade"   value  the format that it had, u32
    key 'q', number u64, level u8, place   value  of level 0: score f64, member if it is long (format 3)

Format 2 had no hashes, and no lists and sets in the record of their key: the rest is read as it is. Format 1 had in the
value of a mailbox entry: place u64 | bytes before u64 | its bytes u32 | note. The place counted letters, not messages,
and there was no time: that of what waited then stays unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from itertools import islice
from struct import Struct

from rlite_pubsub.storage import databases, format
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.keys import key_records, ranks, words
from rlite_pubsub.storage.keys.key_records import SORTED_SET
from rlite_pubsub.storage.mail import forms, mailboxes

log = logging.getLogger("rlite_pubsub")

_VERSION = Struct(">I")
_MEMBERS_AT_ONCE = 5000


def upgrade(environment: Environment) -> None:
    """Bring it to the present format, if it has a known older one. No other process has it open."""
    found = format.version(environment)
    if found in _REWRITTEN:
        rewrite = _REWRITTEN[found]

        def begin(txn: Txn) -> None:
            rewrite(txn)
            format.mark(txn)
            txn.put(databases.UPGRADE, _VERSION.pack(found))

        environment.write(begin, freeing=True)
    before = environment.read(lambda txn: txn.get(databases.UPGRADE))
    if before is None:
        return
    _move_orders(environment)
    environment.write(lambda txn: txn.delete(databases.UPGRADE), freeing=True)
    version = _VERSION.unpack(before)[0]
    log.warning("%s had format %d; it has format %d now", environment.path, version, format.VERSION)


# -- from format 3: the order of large sorted sets

_ORDER_3 = b"q"
_ROW_3 = Struct(">cQB")
_SCORE = Struct(">d")
_LARGE = Struct(">QQB")
_NUMBER = Struct(">Q")
_MAY_HAVE_MINUS_ZERO = 1


def _move_orders(environment: Environment) -> None:
    """Move all orders that are still in format 3."""
    places = environment.read(_large_sorted_sets)
    while row := environment.read(lambda txn: next(databases.items(txn, _ORDER_3), None)):
        number = _ROW_3.unpack_from(row[0])[1]
        move = partial(_remove_some, number=number)
        if number in places:
            move = partial(_move_some, number=number, place=places[number])
        while environment.write(move, freeing=True):
            pass


def _large_sorted_sets(txn: Txn) -> dict[int, bytes]:
    """Return where the keys of large sorted sets stand, by number."""
    found = {}
    for key, value in databases.items(txn, databases.KEYS):
        record = key_records.unpack(value)
        if record.type == SORTED_SET and (number := _NUMBER.unpack_from(record.body)[0]):
            found[number] = key[len(databases.KEYS) :]
    return found


def _remove_some(txn: Txn, number: int) -> bool:
    """Remove rows that belong to no key; return whether there may be more."""
    rows = [key for key, _ in islice(databases.items(txn, _ORDER_3 + _NUMBER.pack(number)), _MEMBERS_AT_ONCE)]
    for key in rows:
        txn.delete(key)
    return len(rows) == _MEMBERS_AT_ONCE


def _move_some(txn: Txn, number: int, place: bytes) -> bool:
    """Move the next members of level 0 into nodes after those that are there; with the last of them, build the counts.
    Returns whether there are more. The key stands at this place."""
    old = _ROW_3.pack(_ORDER_3, number, 0)
    rows = list(islice(databases.items(txn, old), _MEMBERS_AT_ONCE))
    prefix = ranks.prefix(number, 0)
    last = databases.last_up_to(txn, prefix, prefix + b"\xff" * ranks.MOST_BOUND_BYTES)
    bound, node = (last[0][len(prefix) :], words.unpack(last[1], 0)) if last is not None else (b"", [])
    size = sum(map(len, node)) + ranks.WORD_BYTES * len(node)
    for key, value in rows:
        member = value[_SCORE.size :] or key[len(old) + ranks.SCORE_BYTES :]
        at = ranks.place(_SCORE.unpack_from(value)[0], member)
        if node and size + len(at) + ranks.WORD_BYTES > ranks.JOINED_BYTES:
            txn.put(prefix + bound, words.pack(node))
            bound, node, size = ranks.between(node[-1], at), [], 0
        node.append(at)
        size += len(at) + ranks.WORD_BYTES
        txn.delete(key)
    txn.put(prefix + bound, words.pack(node))
    if len(rows) == _MEMBERS_AT_ONCE:
        return True
    _count(txn, number, place)
    return False


def _count(txn: Txn, number: int, place: bytes) -> None:
    """Build the levels above level 0, and record their number in the key at this place."""
    databases.delete_all(txn, _ORDER_3 + _NUMBER.pack(number))
    stored = key_records.get(txn, place)
    assert stored is not None
    posts = [
        ranks.pack_post(len(words.unpack(value, 0)), key[ranks.PREFIX_BYTES :])
        for key, value in databases.items(txn, ranks.prefix(number, 0))
    ]
    level = 0
    while len(posts) > 1:
        level += 1
        posts = _put_level(txn, number, level, posts)
    body = _LARGE.pack(number, _LARGE.unpack(stored.body)[1], level)
    record = stored._replace(flags=_MAY_HAVE_MINUS_ZERO, body=body)
    key_records.put(txn, place, key_records.pack(*record))


def _put_level(txn: Txn, number: int, level: int, posts: list[bytes]) -> list[bytes]:
    """Write the nodes of a level from their words for those below; return the words for the next level."""
    above: list[bytes] = []
    start = 0
    while start < len(posts):
        stop, size = start, 0
        while stop < len(posts) and (stop - start < 2 or size <= ranks.JOINED_BYTES):
            size += len(posts[stop]) + ranks.WORD_BYTES
            stop += 1
        counted = [ranks.unpack_post(post) for post in posts[start:stop]]
        bound = counted[0][1]
        txn.put(ranks.prefix(number, level) + bound, words.pack(posts[start:stop]))
        above.append(ranks.pack_post(sum(count for count, _ in counted), bound))
        start = stop
    return above


# -- from format 1: mailboxes

_ENTRY_1 = Struct(">QQI")
_ENTRY_2 = Struct(">QQIIQ")
_MAILBOX_BYTES = 17


def _rewrite_mailboxes(txn: Txn) -> None:
    mailbox, messages_before = b"", 0
    cursor = txn.cursor()
    found = cursor.set_range(databases.MAILBOXES)
    while found and (key := cursor.key()).startswith(databases.MAILBOXES):
        value = cursor.value()
        if key[:_MAILBOX_BYTES] != mailbox:
            mailbox, messages_before = key[:_MAILBOX_BYTES], 0
        _, bytes_before, size_bytes = _ENTRY_1.unpack_from(value)
        note = value[_ENTRY_1.size :]
        told = forms.unpack(note)
        messages = max(1, told.messages // max(1, len(told.forms)))
        txn.put(key, _ENTRY_2.pack(messages_before, bytes_before, size_bytes, messages, mailboxes.UNKNOWN_MS) + note)
        messages_before += messages
        found = cursor.set_range(key + b"\0")  # the put has moved what the cursor stood on


_REWRITTEN: dict[int | None, Callable[[Txn], None]] = {1: _rewrite_mailboxes, 2: lambda txn: None, 3: lambda txn: None}
"""What is rewritten at once, by the older version."""
