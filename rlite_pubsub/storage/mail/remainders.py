"""What is left of a letter of which the first messages have been read: it stays in the mailbox, under another note."""

from __future__ import annotations

from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import forms
from rlite_pubsub.storage.mail.mailboxes import Mailbox

_KEY = Struct(">cQQQ")


def after(note: bytes, read: int) -> bytes:
    """The note of a letter for a durable subscriber once so many of its messages are read."""
    whole = forms.unpack(note)
    count = read * len(whole.forms)
    return forms.pack(whole.before + count, whole.messages - count, forms.pack_forms(whole.forms))


def leave(txn: Txn, mailbox: Mailbox, sequence: int, note: bytes, rest: bytes) -> None:
    """Put `rest` in the place of its note; nothing if it is not there any more, or has another note."""
    key = _KEY.pack(databases.MAILBOXES, *mailbox, sequence)
    entry = txn.get(key)
    if entry is not None and entry.endswith(note):
        txn.put(key, entry[: -len(note)] + rest)
