"""The note on a letter for a durable subscriber: how many messages went before it, how many it holds, and in which
forms each of them is received, in order.

    +---------------------+--------------+------------------------------------------+
    | messages before u64 | messages u32 | forms: 0 (by its name), or               |
    |                     |              |        1 | length u32 | the pattern      |
    +---------------------+--------------+------------------------------------------+
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import mailboxes
from rlite_pubsub.storage.mail.mailboxes import Mailbox

_HEAD = Struct(">QI")
_LENGTH = Struct(">I")

Forms = tuple[bytes | None, ...]
"""The pattern that matched, or None for the name itself; once for each time that a message is received."""


class Note(NamedTuple):
    """A note, unpacked."""

    before: int
    messages: int
    forms: Forms


def pack(before: int, messages: int, packed_forms: bytes) -> bytes:
    """Pack a letter of this many messages."""
    return _HEAD.pack(before, messages) + packed_forms


def pack_forms(forms: Forms) -> bytes:
    return b"".join([b"\0" if form is None else b"\1%b%b" % (_LENGTH.pack(len(form)), form) for form in forms])


def unpack(note: bytes) -> Note:
    before, messages = _HEAD.unpack_from(note)
    forms: list[bytes | None] = []
    at = _HEAD.size
    while at < len(note):
        if note[at] == 0:
            forms.append(None)
            at += 1
        else:
            start = at + 1 + _LENGTH.size
            at = start + _LENGTH.unpack_from(note, at + 1)[0]
            forms.append(note[start:at])
    return Note(before, messages, tuple(forms))


def count(packed_forms: bytes) -> int:
    """Return how many times a message is received in these packed forms."""
    return len(unpack(pack(0, 0, packed_forms)).forms)


def after(note: bytes, read: int) -> bytes:
    """Return the note of a letter for a durable subscriber once this many of its messages are read."""
    whole = unpack(note)
    received = read * len(whole.forms)
    return pack(whole.before + received, whole.messages - received, pack_forms(whole.forms))


def next_before(txn: Txn, mailbox: Mailbox) -> int:
    """Return how many messages the next letter of this mailbox has before it."""
    last = mailboxes.last_note(txn, mailbox)
    return 0 if last is None else sum(_HEAD.unpack_from(last))


def waiting_messages(txn: Txn, mailbox: Mailbox, after_sequence: int = 0) -> int:
    """Return how many messages stand in the mailbox after this sequence."""
    first = mailboxes.first_note(txn, mailbox, after_sequence)
    return 0 if first is None else next_before(txn, mailbox) - int(_HEAD.unpack_from(first)[0])
