"""Checks that the records of names and messages fit each other: every reference leads somewhere, and nothing is left
over.

Every transaction leaves them consistent. A fault is damage, or a bug of this program.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import mailboxes, messages
from rlite_pubsub.storage.names import durables, receivers, subscriptions

_MAILBOX_KEY = Struct(">cQQQ")
_MAILBOX_ENTRY = Struct(">QQII")
_SEQUENCE = Struct(">cQ")


def faults(txn: Txn, *, are_durable: bool) -> Iterator[str]:
    """Yield the faults of one environment; for the durable half also records of subscribers that do not exist."""
    yield from _of_names(txn)
    yield from _of_messages(txn)
    if are_durable:
        known = {one.id for one in durables.every(txn)}
        for id in {*subscriptions.subscribers(txn), *mailboxes.owners(txn)} - known:
            yield f"durable subscriber {id:016x} holds names or messages, and has no record"


def _of_names(txn: Txn) -> Iterator[str]:
    """Check both directions of the index."""
    held = {(id, byte, name) for id in subscriptions.subscribers(txn) for byte, name in subscriptions.held(txn, id)}
    received = {
        (one.subscriber, database.byte, one.name)
        for database in receivers.DATABASES.values()
        for one in receivers.receivers(txn, database)
    }
    for id, byte, name in held ^ received:
        where = "has the name, and is not found by it" if (id, byte, name) in held else "is found by a name it has not"
        yield f"subscriber {id:016x} {where}: {byte!r} {name!r}"


def _of_messages(txn: Txn) -> Iterator[str]:
    references: Counter[int] = Counter()
    box, messages_after, bytes_after = b"", 0, 0
    for key, value in databases.items(txn, databases.MAILBOXES):
        _, subscriber, session, sequence = _MAILBOX_KEY.unpack(key)
        references[sequence] += 1
        messages_before, bytes_before, size_bytes, count = _MAILBOX_ENTRY.unpack_from(value)
        if key[:-8] == box and (messages_before < messages_after or bytes_before < bytes_after):
            yield f"mailbox {subscriber:016x}/{session}: message {sequence} counts less before it than there was"
        box, messages_after, bytes_after = key[:-8], messages_before + count, bytes_before + size_bytes
    stored = {_SEQUENCE.unpack(key)[1] for key, _ in databases.items(txn, databases.MESSAGES)}
    for sequence in references.keys() - stored:
        yield f"message {sequence} is in {references[sequence]} mailbox(es), and is not there"
    for sequence in stored:
        counted = messages.references(txn, sequence)
        if counted != references[sequence]:
            yield f"message {sequence} is in {references[sequence]} mailbox(es), and counts {counted}"
    for key, _ in databases.items(txn, databases.REFERENCES):
        if _SEQUENCE.unpack(key)[1] not in stored:
            yield f"message {_SEQUENCE.unpack(key)[1]} has a count of references, and is not there"
