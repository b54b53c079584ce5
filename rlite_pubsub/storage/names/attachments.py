"""durable subscriber -> the session that it is attached to now. In live.mdb: no session outlives the machine's boot.

key    'a' | durable subscriber u64
value  subscriber u64 (the process) | session u64
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn

_KEY = Struct(">cQ")
_VALUE = Struct(">QQ")


class Attachment(NamedTuple):
    """The session that a durable subscriber is attached to."""

    subscriber: int
    session: int


def put(txn: Txn, durable: int, attachment: Attachment) -> Attachment | None:
    """Attach it here; return where it was before."""
    before = get(txn, durable)
    txn.put(_KEY.pack(databases.ATTACHMENTS, durable), _VALUE.pack(*attachment))
    return before


def get(txn: Txn, durable: int) -> Attachment | None:
    found = txn.get(_KEY.pack(databases.ATTACHMENTS, durable))
    return None if found is None else Attachment(*_VALUE.unpack(found))


def remove(txn: Txn, durable: int, attachment: Attachment | None = None) -> bool:
    """Detach it; return False if it was away, or attached elsewhere than `attachment`."""
    if attachment is not None and get(txn, durable) != attachment:
        return False
    return txn.delete(_KEY.pack(databases.ATTACHMENTS, durable))


def every(txn: Txn) -> dict[int, Attachment]:
    found = databases.items(txn, databases.ATTACHMENTS)
    return {_KEY.unpack(key)[1]: Attachment(*_VALUE.unpack(value)) for key, value in found}


def drop_subscriber(txn: Txn, subscriber: int) -> int:
    """Detach everything that was attached to this process; return how many there were."""
    gone = [durable for durable, attachment in every(txn).items() if attachment.subscriber == subscriber]
    for durable in gone:
        remove(txn, durable)
    return len(gone)
