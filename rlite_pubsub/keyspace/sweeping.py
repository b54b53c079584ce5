"""Background work on keys: they expire, and what was deleted is swept up, a little at a time."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from rlite_pubsub.storage.keys import garbage, key_records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlite_pubsub.keyspace.part import Part


def expire_some(parts: Sequence[Part], limit: int) -> int:
    """Remove at most `limit` expired keys of each part; return how many there were. Raises StoreError."""
    return sum([_expire(part, limit) for part in parts])


def _expire(part: Part, limit: int) -> int:
    due = key_records.expired(part.settle(), part.clock_ms(), limit)
    if not due:
        return 0
    databases = {space.number: database for database, space in part.spaces().items()}
    part.writing()
    for when, place in due:
        database = databases.get(key_records.space_of(place))
        stored = key_records.get(part.settle(), place) if database is not None else None
        if database is None or stored is None:
            key_records.set_expiry(part.writing(), place, when, 0)  # of a space that is garbage
            continue
        part.expire(part.found(database, place, stored))
    return len(due)


def expire_here(part: Part, limit: int) -> None:
    """Look at no more than `limit` of the keys whose time clients of a writable replica have set, and remove those that
    have expired: no master says so. Raises StoreError."""
    here, now_ms = part.expiring_here, part.clock_ms()
    for key in list(islice(here, limit)):
        due_ms = here.pop(key)
        record = part.get(*key) if due_ms <= now_ms else None
        if record is not None and record.expires_ms <= now_ms:
            part.expire(record)
        elif due_ms > now_ms or (record is not None and record.expires_ms):
            here[key] = due_ms if record is None else record.expires_ms


def sweep_some(parts: Sequence[Part], limit: int) -> int:
    """Remove about `limit` records of each part's garbage at most; return how many there were. Raises StoreError."""
    return sum([_sweep(part, limit) for part in parts])


def _sweep(part: Part, limit: int) -> int:
    if not garbage.exists(part.settle()):
        return 0
    txn = part.writing()
    if not garbage.exists(txn):  # another process has been quicker
        return 0
    removed = garbage.sweep(txn, limit, part.clock_ms() + part.cold.grace_ms)
    part.wrote_beside()  # if no record, then the note that there is garbage
    return removed
