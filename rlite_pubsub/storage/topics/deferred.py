"""Entries that are to be appended later.

    key    'F', topic u64, due ms u64, number u32    value  the fields and values, as the entry will have them

The number tells those of one time apart, in the order in which they came. The topic's row of deadlines.py has their
count.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.databases import DEFERRED
from rlite_pubsub.storage.environment import Txn

_TOPIC = Struct(">Q")
_TIME = Struct(">Q")
_WHEN = Struct(">QI")
HIGHEST = 2**32 - 1


class Ticket(NamedTuple):
    """The name of a deferred entry."""

    due_ms: int
    number: int


FIRST = Ticket(0, 0)


class Deferred(NamedTuple):
    """A deferred entry."""

    due_ms: int
    number: int
    words: bytes
    """The array of its fields and values, in wire format."""

    @property
    def ticket(self) -> Ticket:
        return Ticket(self.due_ms, self.number)


def add(txn: Txn, topic: int, due_ms: int, words: bytes) -> int:
    """Add an entry after those of its time; return its number."""
    of_topic = DEFERRED + _TOPIC.pack(topic)
    of_time = of_topic + _TIME.pack(due_ms)
    last = databases.last_up_to(txn, of_time, of_topic + _WHEN.pack(due_ms, HIGHEST))
    number = 0 if last is None else _WHEN.unpack_from(last[0], len(of_topic))[1] + 1
    txn.put(of_topic + _WHEN.pack(due_ms, number), words)
    return number


def walk(txn: Txn, topic: int, ticket: Ticket = FIRST) -> Iterator[Deferred]:
    """Yield all of a topic in the order of their times, from a ticket on. Change nothing meanwhile."""
    of_topic = DEFERRED + _TOPIC.pack(topic)
    for key, value in databases.items_from(txn, of_topic, of_topic + _WHEN.pack(*ticket)):
        due_ms, number = _WHEN.unpack_from(key, len(of_topic))
        yield Deferred(due_ms, number, value)


def get(txn: Txn, topic: int, ticket: Ticket) -> bytes | None:
    """Return the fields and values of one, if it exists."""
    return txn.get(DEFERRED + _TOPIC.pack(topic) + _WHEN.pack(*ticket))


def delete(txn: Txn, topic: int, ticket: Ticket) -> bool:
    """Delete one; return False if it does not exist."""
    return txn.delete(DEFERRED + _TOPIC.pack(topic) + _WHEN.pack(*ticket))


def delete_all(txn: Txn, topic: int) -> None:
    databases.delete_all(txn, DEFERRED + _TOPIC.pack(topic))


def copy(txn: Txn, topic: int, to: int) -> None:
    """Copy all of a topic to another one."""
    databases.copy_all(txn, DEFERRED + _TOPIC.pack(topic), DEFERRED + _TOPIC.pack(to))
