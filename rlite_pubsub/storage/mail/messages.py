"""sequence -> the message, stored once however many mailboxes refer to it, and removed with the last of them.

A sequence is never used again, not even after its message is gone. The count of references stands apart, so that
releasing one does not write a large message again; a message with exactly one reference has no count at all.

    key    'm' | sequence u64        value  the message
    key    'r' | sequence u64        value  references u32 (0, or 2 and more)
    key    \\0 "sequence"             value  the last sequence given u64
"""

from __future__ import annotations

from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

_KEY = Struct(">cQ")
_REFERENCES = Struct(">I")


def append(txn: Txn, message: bytes, references: int = 0) -> int:
    """Store a message that this many mailboxes will refer to (`refer` adds to them); return its sequence."""
    put = txn.put
    last = txn.get(databases.LAST_SEQUENCE)
    sequence = 1 if last is None else int.from_bytes(last, "big") + 1
    put(databases.LAST_SEQUENCE, sequence.to_bytes(8, "big"))
    put(_KEY.pack(databases.MESSAGES, sequence), message)
    if references != 1:
        _set_references(txn, sequence, references, before=1)
    return sequence


def read(txn: Txn, sequence: int) -> bytes | None:
    return txn.get(_KEY.pack(databases.MESSAGES, sequence))


def refer(txn: Txn, sequence: int) -> None:
    """Count one more reference to it."""
    before = references(txn, sequence)
    _set_references(txn, sequence, before + 1, before=before)


def release(txn: Txn, sequence: int) -> bool:
    """Count one reference less. Returns True if it was the last, and the message is gone."""
    before = references(txn, sequence)
    if before > 1:
        _set_references(txn, sequence, before - 1, before=before)
        return False
    if before == 0:
        txn.delete(_KEY.pack(databases.REFERENCES, sequence))
    return txn.delete(_KEY.pack(databases.MESSAGES, sequence))


def release_all(txn: Txn, sequences: list[int]) -> None:
    """Count one reference less for each of them."""
    if not sequences:
        return
    cursor = txn.cursor()
    if cursor.set_range(_KEY.pack(databases.REFERENCES, min(sequences))) and cursor.key() <= _KEY.pack(
        databases.REFERENCES, max(sequences)
    ):
        for sequence in sequences:
            release(txn, sequence)
    else:  # none of them has a count
        for sequence in sequences:
            txn.delete(_KEY.pack(databases.MESSAGES, sequence))


def references(txn: Txn, sequence: int) -> int:
    found = txn.get(_KEY.pack(databases.REFERENCES, sequence))
    return 1 if found is None else int(_REFERENCES.unpack(found)[0])


def count(txn: Txn) -> int:
    """Return how many messages are stored."""
    return sum(1 for _ in databases.items(txn, databases.MESSAGES))


def _set_references(txn: Txn, sequence: int, wanted: int, *, before: int) -> None:
    key = _KEY.pack(databases.REFERENCES, sequence)
    if wanted != 1:
        txn.put(key, _REFERENCES.pack(wanted))
    elif before != 1:
        txn.delete(key)
