"""mailbox -> the sequences of its messages, oldest first.

A mailbox belongs to a subscriber; its session 0 is the subscriber's own. Messages enter at the end and leave from the
front, never from the middle: so each entry notes how many messages and bytes went before it, and the backlog is the
difference between the last and the first. One stored letter may hold many messages: a run.

    key    'b' | subscriber u64 | session u64 | sequence u64
    value  messages before u64 | bytes before u64 | its bytes u32 | its messages u32 | put here, ms since 1970 u64
           (0: unknown) | note (what the publisher matched, for the reader)
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.errors import DanglingLetter
from rlite_pubsub.storage.journal.recording import delete_here
from rlite_pubsub.storage.mail import messages

_OWNER: Final = Struct(">cQ")
_HEAD: Final = Struct(">cQQ")
_KEY: Final = Struct(">cQQQ")
_ENTRY: Final = Struct(">QQIIQ")
_PUT_AT: Final = Struct(">24xQ")
_PAST_ALL: Final = b"\xff" * 8


UNKNOWN_MS: Final = 0
"""The time of entries that were put there when no time was noted."""


class Mailbox(NamedTuple):
    """The owner of a mailbox. Session 0 is the subscriber itself."""

    subscriber: int
    session: int = 0


class Letter(NamedTuple):
    """A message in a mailbox."""

    sequence: int
    message: bytes
    note: bytes


class MailboxSize(NamedTuple):
    """The contents of a mailbox in numbers."""

    messages: int
    bytes: int


def deliver(
    txn: Txn,
    message: bytes,
    to: Sequence[tuple[Mailbox, bytes]],
    at_ms: int = UNKNOWN_MS,
    count: int = 1,
    were_empty: set[int] | None = None,
    heavy_from_bytes: int = 0,
    heavy: set[int] | None = None,
) -> int:
    """Store the message, or a run of `count`, once and put it, with a note for each, into these mailboxes; return its
    sequence. Subscribers whose mailboxes were empty are added to `were_empty`; those whose mailboxes got
    `heavy_from_bytes` or more since they were last empty, to `heavy`: no other holds as much."""
    sequence = messages.append(txn, message, len(to))
    size_bytes = len(message)
    entry = size_bytes, count, at_ms
    for mailbox, note in to:
        bytes_before = _enter(txn, mailbox, sequence, entry, note)
        if not bytes_before and were_empty is not None:
            were_empty.add(mailbox.subscriber)
        if heavy is not None and bytes_before + size_bytes >= heavy_from_bytes:
            heavy.add(mailbox.subscriber)
    return sequence


def push(txn: Txn, mailbox: Mailbox, sequence: int, size_bytes: int, note: bytes = b"") -> None:
    """Put an already stored message into one more mailbox."""
    messages.refer(txn, sequence)
    _enter(txn, mailbox, sequence, (size_bytes, 1, UNKNOWN_MS), note)


def take(
    txn: Txn, mailbox: Mailbox, limit_bytes: int, after_sequence: int = 0, most: int | None = None
) -> list[Letter]:
    """Return the oldest letters after `after_sequence`, up to `limit_bytes` but at least one, and no more than `most`.
    They stay in the mailbox."""
    cursor = txn.cursor()
    head = _key_head(mailbox)
    found: list[Letter] = []
    if not cursor.set_range(_KEY.pack(databases.MAILBOXES, *mailbox, after_sequence + 1)):
        return found
    for key in cursor.iternext(values=False):
        if not key.startswith(head):
            break
        value = cursor.value()
        limit_bytes -= _ENTRY.unpack_from(value)[2]
        if (limit_bytes < 0 and found) or len(found) == most:
            break
        sequence = _KEY.unpack(key)[3]
        message = messages.read(txn, sequence)
        if message is None:
            raise DanglingLetter(f"{mailbox} refers to message {sequence}, which is not there")
        found.append(Letter(sequence, message, value[_ENTRY.size :]))
    return found


def remove(txn: Txn, mailbox: Mailbox, up_to_sequence: int, limit: int | None = None) -> int:
    """Remove the letters up to and including this one, at most `limit`; return how many there were."""
    return _remove(txn, _key_head(mailbox), up_to_sequence, limit)


def remove_one(txn: Txn, mailbox: Mailbox, sequence: int) -> None:
    """Remove this letter, wherever it stands. The backlog counts it until those before it are gone."""
    if txn.delete(_KEY.pack(databases.MAILBOXES, *mailbox, sequence)):
        messages.release(txn, sequence)


def change_note(txn: Txn, mailbox: Mailbox, sequence: int, note: bytes, fresh: bytes) -> None:
    """Give this letter another note, if it is there and has this one."""
    key = _KEY.pack(databases.MAILBOXES, *mailbox, sequence)
    entry = txn.get(key)
    if entry is not None and entry.endswith(note):
        txn.put(key, entry[: -len(note)] + fresh)


def drop(txn: Txn, mailbox: Mailbox, limit: int | None = None) -> int:
    """Remove the letters of a mailbox, at most `limit`; return how many there were."""
    return _remove(txn, _key_head(mailbox), None, limit)


def drop_subscriber(txn: Txn, subscriber: int, limit: int | None = None) -> int:
    """Remove the letters of all mailboxes of a subscriber, at most `limit`; return how many there were."""
    return _remove(txn, _OWNER.pack(databases.MAILBOXES, subscriber), None, limit)


def first_note(txn: Txn, mailbox: Mailbox, after_sequence: int = 0) -> bytes | None:
    """Return the note of the oldest letter after this sequence."""
    cursor = txn.cursor()
    found = cursor.set_range(_KEY.pack(databases.MAILBOXES, *mailbox, after_sequence + 1))
    return cursor.value()[_ENTRY.size :] if found and cursor.key().startswith(_key_head(mailbox)) else None


def last_note(txn: Txn, mailbox: Mailbox) -> bytes | None:
    """Return the note of the newest letter."""
    head = _key_head(mailbox)
    found = databases.last_up_to(txn, head, head + _PAST_ALL)
    return found[1][_ENTRY.size :] if found is not None else None


def backlog(txn: Txn, mailbox: Mailbox, after_sequence: int = 0) -> MailboxSize:
    """Return what it holds after this sequence."""
    head = _key_head(mailbox)
    cursor = txn.cursor()
    found = cursor.set_range(_KEY.pack(databases.MAILBOXES, *mailbox, after_sequence + 1))
    if not found or not cursor.key().startswith(head):
        return MailboxSize(0, 0)
    messages_before, bytes_before, *_ = _ENTRY.unpack_from(cursor.value())
    count, size_bytes = _end(txn, head)
    return MailboxSize(count - messages_before, size_bytes - bytes_before)


def oldest_ms(txn: Txn, mailbox: Mailbox) -> int | None:
    """Return when its oldest message was put there (UNKNOWN_MS if that is not known); None if it is empty."""
    cursor = txn.cursor()
    head = _key_head(mailbox)
    if not cursor.set_range(head) or not cursor.key().startswith(head):
        return None
    return int(_PUT_AT.unpack_from(cursor.value())[0])


def mailboxes_of(txn: Txn, subscriber: int) -> list[Mailbox]:
    """Return the subscriber's mailboxes that are not empty."""
    owner = _OWNER.pack(databases.MAILBOXES, subscriber)
    return [Mailbox(subscriber, int.from_bytes(head, "big")) for head in databases.heads(txn, owner, 8)]


def owners(txn: Txn) -> list[int]:
    """Return every subscriber with a mailbox that is not empty."""
    return [int.from_bytes(head, "big") for head in databases.heads(txn, databases.MAILBOXES, 8)]


def _key_head(mailbox: Mailbox) -> bytes:
    return _HEAD.pack(databases.MAILBOXES, *mailbox)


def _enter(txn: Txn, mailbox: Mailbox, sequence: int, entry: tuple[int, int, int], note: bytes) -> int:
    """Add an entry: its bytes, its messages and the time. Returns how many bytes were put there before it since the
    mailbox was last empty; 0 if it was empty until now."""
    subscriber, session = mailbox
    key = _KEY.pack(databases.MAILBOXES, subscriber, session, sequence)
    cursor = txn.cursor()
    messages_before = bytes_before = 0
    if cursor.prev() if cursor.set_range(key) else cursor.last():  # after its last: law of the file
        last_key, last = cursor.item()
        if last_key[: _HEAD.size] == key[: _HEAD.size]:
            messages_before, bytes_before, size_bytes, count, _ = _ENTRY.unpack_from(last)
            messages_before += count
            bytes_before += size_bytes
    txn.put(key, _ENTRY.pack(messages_before, bytes_before, *entry) + note)
    return bytes_before


def _end(txn: Txn, head: bytes) -> tuple[int, int]:
    """Return the messages and the bytes before the next entry."""
    found = databases.last_up_to(txn, head, head + _PAST_ALL)
    if found is None:
        return 0, 0
    messages_before, bytes_before, size_bytes, count, _ = _ENTRY.unpack_from(found[1])
    return messages_before + count, bytes_before + size_bytes


def _remove(txn: Txn, head: bytes, up_to_sequence: int | None, limit: int | None) -> int:
    cursor = txn.cursor()
    removed: list[int] = []
    cursor.set_range(head)
    while (key := cursor.key()).startswith(head) and len(removed) != limit:
        sequence = int.from_bytes(key[_HEAD.size :], "big")
        if up_to_sequence is not None and sequence > up_to_sequence:
            break
        removed.append(sequence)
        delete_here(txn, cursor)  # it stands on the next one now, or on nothing
    messages.release_all(txn, removed)  # not in between, for that moves what the cursor stands on
    return len(removed)
