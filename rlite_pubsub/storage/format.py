"""The version of the bytes in an environment (FORMAT.md), written when it is made and checked whenever it is opened.

    key \\0 "format"   value  version u32
    key \\0 "boot"     value  the boot id during which live.mdb was made (live.mdb only)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.databases import BOOT, FORMAT
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.errors import StoreDamaged, StoreFormatMismatch, StoreFormatOlder
from rlite_pubsub.storage.mail import forms, mailboxes

VERSION = 3
OLDEST_VERSION = 1
"""The oldest that can be upgraded."""
_VERSION = Struct(">I")


def check_or_mark(environment: Environment, boot: bytes = b"", *, was_ours: bool = False) -> None:
    """Mark a new environment as a store's. Raises StoreFormatMismatch for one that is not of this version, and
    StoreDamaged for one that bears no mark and is known to have borne it."""
    if environment.read(lambda txn: _is_ours(txn, environment.path, was_ours)):
        return

    def make(txn: Txn) -> None:
        mark(txn)
        if boot:
            txn.put(BOOT, boot)

    environment.write(make)


def version(environment: Environment) -> int | None:
    """The version that it is marked with; None for a new one, or another program's."""
    found = environment.read(lambda txn: txn.get(FORMAT))
    return None if found is None else int.from_bytes(found, "big")


def mark(txn: Txn) -> None:
    """It is of this version from now on."""
    txn.put(FORMAT, _VERSION.pack(VERSION))


def is_of_this_boot(environment: Environment) -> bool:
    """False only if it was surely made before the machine was started last."""
    recorded = environment.read(lambda txn: txn.get(BOOT))
    current = boot_id()
    return not recorded or not current or recorded == current


def _is_ours(txn: Txn, path: Path, was_ours: bool) -> bool:
    """False for an empty environment."""
    found = txn.get(FORMAT)
    if found is None:
        if txn.stat()["entries"]:
            if was_ours:
                raise StoreDamaged(path, "its mark is missing")
            raise StoreFormatMismatch(path, "of another program", str(VERSION))
        return False
    if found != _VERSION.pack(VERSION):
        number = int.from_bytes(found, "big")
        mismatch = StoreFormatOlder if OLDEST_VERSION <= number < VERSION else StoreFormatMismatch
        raise mismatch(path, str(number), str(VERSION))
    return True


# -- What becomes of a data.mdb of an older format: it is rewritten, in one transaction, before anybody reads it. Format
# 2 had no hashes, and no lists and sets in the record of their key: it is read as it is. Format 1 had in the value of a
# mailbox entry: place u64 | bytes before u64 | its bytes u32 | note. The place counted letters, not messages, and there
# was no time: that of what waited then stays unknown.

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
    mark(txn)


UPGRADED: dict[int | None, Callable[[Txn], None]] = {1: from_1, 2: mark}
"""By the older version."""
