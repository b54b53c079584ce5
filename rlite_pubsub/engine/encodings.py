"""How Redis would keep a value: the encoding and the reference count that OBJECT and DEBUG show."""

from __future__ import annotations

from rlite_pubsub.engine.arguments.integers import integer
from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.records import PLAIN, RAW, Record, Text
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet
from rlite_pubsub.protocol.errors import CommandError

LONGEST_EMBEDDED = 44
SHARED_INTEGERS = 10_000
SHARED_REFERENCES = 2_147_483_647


def encoding(record: Record) -> bytes:
    """Return the encoding in which Redis would keep a value."""
    if isinstance(record, List):
        return b"quicklist"
    if isinstance(record, Set):
        return b"intset" if record.is_of_integers else b"hashtable"
    if isinstance(record, Hash):
        if not record.is_small:
            return b"hashtable"
        return b"listpackex" if record.expires_by_fields else b"listpack"
    if isinstance(record, SortedSet):
        return b"listpack" if record.is_small else b"skiplist"
    if not isinstance(record, Text):
        return b"stream"
    if record.form != RAW:
        if _is_integer(record):
            return b"int"
        if len(record.value) <= LONGEST_EMBEDDED:
            return b"embstr"
    return b"raw"


def references(record: Record, *, shares_integers: bool) -> int:
    """Return the reference count that Redis would have, if it shares small integers now."""
    if not shares_integers or not isinstance(record, Text) or not _is_integer(record):
        return 1
    return SHARED_REFERENCES if 0 <= int(record.value) < SHARED_INTEGERS else 1


def _is_integer(text: Text) -> bool:
    if text.form in (RAW, PLAIN) or len(text.value) > 20:
        return False
    try:
        integer(text.value)
    except CommandError:
        return False
    return True
