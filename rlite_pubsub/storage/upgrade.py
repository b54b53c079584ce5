"""What becomes of a data.mdb of an older format: it is rewritten, in one transaction, before anybody reads it.

Format 1 had in the value of a mailbox entry: place u64 | bytes before u64 | its bytes u32 | note. The place counted
letters, not messages, and there was no time: that of what waited then stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from rlite_pubsub.storage import databases, format
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.mail import forms, mailboxes

_ENTRY_1 = Struct(">QQI")
_ENTRY_2 = Struct(">QQIIQ")
_MAILBOX_BYTES = 17


def from_1(txn: Txn) -> None:
    """Rewrite the mailboxes."""
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
    format.mark(txn)


UPGRADED: dict[int | None, Callable[[Txn], None]] = {1: from_1}
"""By the older version."""
