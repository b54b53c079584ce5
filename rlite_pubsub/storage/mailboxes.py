"""mailbox -> the sequences of its messages, oldest first.

A mailbox belongs to a subscriber; its session 0 is the subscriber's own. Messages enter at the end and leave from the
front, never from the middle: so each entry notes how many messages and bytes went before it, and the backlog is the
difference between the last and the first.

    key    'b' | subscriber u64 | session u64 | sequence u64
    value  place u64 | bytes before u64 | bytes of the message u32 | note (what the publisher matched, for the reader)
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import keys, messages
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import DanglingLetter

_OWNER = Struct(">cQ")
_HEAD = Struct(">cQQ")
_KEY = Struct(">cQQQ")
_ENTRY = Struct(">QQI")
_PAST_ALL = b"\xff" * 8


class Mailbox(NamedTuple):
    """Whose it is. Session 0 is the subscriber itself."""

    subscriber: int
    session: int = 0


class Letter(NamedTuple):
    """A message in a mailbox."""

    sequence: int
    message: bytes
    note: bytes


class Backlog(NamedTuple):
    """What a mailbox holds."""

    messages: int
    bytes: int


def deliver(txn: Txn, message: bytes, to: Sequence[tuple[Mailbox, bytes]]) -> int:
    """Store the message once and put it, with a note for each, into these mailboxes; its sequence."""
    sequence = messages.append(txn, message, len(to))
    for mailbox, note in to:
        _enter(txn, mailbox, sequence, len(message), note)
    return sequence


def push(txn: Txn, mailbox: Mailbox, sequence: int, size_bytes: int, note: bytes = b"") -> None:
    """Put a message that is stored already into one more mailbox."""
    messages.refer(txn, sequence)
    _enter(txn, mailbox, sequence, size_bytes, note)


def take(txn: Txn, mailbox: Mailbox, limit_bytes: int, after_sequence: int = 0) -> list[Letter]:
    """The oldest letters after `after_sequence`, up to `limit_bytes` but at least one. They stay in the mailbox."""
    cursor = txn.cursor()
    head = _key_head(mailbox)
    found: list[Letter] = []
    if not cursor.set_range(_KEY.pack(keys.MAILBOXES, *mailbox, after_sequence + 1)):
        return found
    for key, value in cursor.iternext():
        if not key.startswith(head):
            break
        limit_bytes -= _ENTRY.unpack_from(value)[2]
        if limit_bytes < 0 and found:
            break
        sequence = _KEY.unpack(key)[3]
        message = messages.read(txn, sequence)
        if message is None:
            raise DanglingLetter(f"{mailbox} refers to message {sequence}, which is not there")
        found.append(Letter(sequence, message, value[_ENTRY.size :]))
    return found


def remove(txn: Txn, mailbox: Mailbox, up_to_sequence: int, limit: int | None = None) -> int:
    """Remove the letters up to and including this one, at most `limit`; how many there were."""
    return _remove(txn, _key_head(mailbox), up_to_sequence, limit)


def remove_one(txn: Txn, mailbox: Mailbox, sequence: int) -> None:
    """Remove this letter, wherever it stands. Until those before it are gone, the backlog still counts it."""
    if txn.delete(_KEY.pack(keys.MAILBOXES, *mailbox, sequence)):
        messages.release(txn, sequence)


def drop(txn: Txn, mailbox: Mailbox, limit: int | None = None) -> int:
    """Remove the letters of a mailbox, at most `limit`; how many there were."""
    return _remove(txn, _key_head(mailbox), None, limit)


def drop_subscriber(txn: Txn, subscriber: int, limit: int | None = None) -> int:
    """Remove the letters of all mailboxes of a subscriber, at most `limit`; how many there were."""
    return _remove(txn, _OWNER.pack(keys.MAILBOXES, subscriber), None, limit)


def first_note(txn: Txn, mailbox: Mailbox, after_sequence: int = 0) -> bytes | None:
    """The note of the oldest letter after this sequence."""
    cursor = txn.cursor()
    found = cursor.set_range(_KEY.pack(keys.MAILBOXES, *mailbox, after_sequence + 1))
    return cursor.value()[_ENTRY.size :] if found and cursor.key().startswith(_key_head(mailbox)) else None


def last_note(txn: Txn, mailbox: Mailbox) -> bytes | None:
    """The note of the newest letter."""
    head = _key_head(mailbox)
    cursor = txn.cursor()
    found = cursor.prev() if cursor.set_range(head + _PAST_ALL) else cursor.last()
    return cursor.value()[_ENTRY.size :] if found and cursor.key().startswith(head) else None


def backlog(txn: Txn, mailbox: Mailbox, after_sequence: int = 0) -> Backlog:
    """What it holds behind this sequence."""
    head = _key_head(mailbox)
    cursor = txn.cursor()
    found = cursor.set_range(_KEY.pack(keys.MAILBOXES, *mailbox, after_sequence + 1))
    if not found or not cursor.key().startswith(head):
        return Backlog(0, 0)
    first_place, first_before, _ = _ENTRY.unpack_from(cursor.value())
    place, before = _end(txn, head)
    return Backlog(place - first_place, before - first_before)


def backlog_of(txn: Txn, subscriber: int) -> Backlog:
    """The backlog of all mailboxes of a subscriber."""
    found = [backlog(txn, mailbox) for mailbox in mailboxes_of(txn, subscriber)]
    return Backlog(sum(one.messages for one in found), sum(one.bytes for one in found))


def mailboxes_of(txn: Txn, subscriber: int) -> list[Mailbox]:
    """The subscriber's mailboxes that are not empty."""
    owner = _OWNER.pack(keys.MAILBOXES, subscriber)
    return [Mailbox(subscriber, int.from_bytes(head, "big")) for head in keys.heads(txn, owner, 8)]


def owners(txn: Txn) -> list[int]:
    """Every subscriber with a mailbox that is not empty."""
    return [int.from_bytes(head, "big") for head in keys.heads(txn, keys.MAILBOXES, 8)]


def _key_head(mailbox: Mailbox) -> bytes:
    return _HEAD.pack(keys.MAILBOXES, *mailbox)


def _enter(txn: Txn, mailbox: Mailbox, sequence: int, size_bytes: int, note: bytes) -> None:
    place, before = _end(txn, _key_head(mailbox))
    txn.put(_KEY.pack(keys.MAILBOXES, *mailbox, sequence), _ENTRY.pack(place, before, size_bytes) + note)


def _end(txn: Txn, head: bytes) -> tuple[int, int]:
    """The place of the next entry, and the bytes before it."""
    cursor = txn.cursor()
    found = cursor.prev() if cursor.set_range(head + _PAST_ALL) else cursor.last()
    if not found or not cursor.key().startswith(head):
        return 0, 0
    place, before, size_bytes = _ENTRY.unpack_from(cursor.value())
    return place + 1, before + size_bytes


def _remove(txn: Txn, head: bytes, up_to_sequence: int | None, limit: int | None) -> int:
    cursor = txn.cursor()
    removed = 0
    found = cursor.set_range(head)
    while found and (key := cursor.key()).startswith(head) and removed != limit:
        sequence = _KEY.unpack(key)[3]
        if up_to_sequence is not None and sequence > up_to_sequence:
            break
        cursor.delete()
        messages.release(txn, sequence)
        removed += 1
        found = cursor.set_range(key)  # the release has moved what the cursor stood on
    return removed
