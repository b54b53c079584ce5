"""How many entries had been trimmed from a topic up to an id: every thousandth is noted, the last thousand times.

    key  'T', topic u64, id (16 bytes)    value  entries trimmed up to and with this one u64

So a reader that comes back with an id that is long gone can learn how many entries it missed, to within a thousand.
"""

from __future__ import annotations

from struct import Struct

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

EVERY = 1000
KEPT = 1000
_TOPIC = Struct(">Q")
_COUNT = Struct(">Q")


def note(txn: Txn, topic: int, last: Id, before: int, after: int) -> None:
    """Note a trim: `before` entries had been trimmed until now, and `after` have up to this id."""
    if before // EVERY == after // EVERY:
        return
    prefix = databases.TRIM_MARKS + _TOPIC.pack(topic)
    txn.put(prefix + entry_ids.pack(last), _COUNT.pack(after))
    oldest = next(databases.items(txn, prefix))
    if _COUNT.unpack(oldest[1])[0] < after - EVERY * KEPT:
        txn.delete(oldest[0])


def forget_behind(txn: Txn, topic: int, entry_id: Id) -> None:
    """Forget the marks after this id: these ids are given out again."""
    prefix = databases.TRIM_MARKS + _TOPIC.pack(topic)
    for key, _ in list(databases.items_from(txn, prefix, prefix + entry_ids.pack(entry_id))):
        txn.delete(key)


def count_up_to(txn: Txn, topic: int, entry_id: Id) -> int:
    """Return at least how many entries had been trimmed up to this id."""
    prefix = databases.TRIM_MARKS + _TOPIC.pack(topic)
    found = databases.last_up_to(txn, prefix, prefix + entry_ids.pack(entry_id))
    return int(_COUNT.unpack(found[1])[0]) if found is not None else 0
