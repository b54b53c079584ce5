"""Looking up entries of a topic by their ids: those of one chunk together."""

from __future__ import annotations

from collections.abc import Sequence

from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.topics import chunks, entry_ids


def entries(txn: Txn, topic: int, ids: Sequence[bytes]) -> list[bytes | None]:
    """Return the entries of these ids (packed, in order), as they are sent; None for an id without an entry."""
    found: list[bytes | None] = []
    place, count = 0, len(ids)
    while place < count:
        chunk = next(chunks.forward(txn, topic, entry_ids.unpack(ids[place])), None)
        if chunk is None:
            break
        last = chunk.last
        stop = place + 1
        while stop < count and ids[stop] <= last:
            stop += 1
        wanted = ids[place:stop]
        start = chunk.place_of(wanted[0])
        size = len(wanted)
        packed = b"".join(wanted)
        if chunk.ids[entry_ids.BYTES * start : entry_ids.BYTES * (start + size)] == packed:
            if size == 1:
                found.append(chunk.slice(start, start + 1))
            else:
                found += chunk.entries(start, start + size)
        else:
            all_ids = chunk.ids
            places = {all_ids[at : at + entry_ids.BYTES]: at // entry_ids.BYTES for at in range(0, len(all_ids), 16)}
            for packed in wanted:
                at = places.get(packed)
                found.append(None if at is None else chunk.slice(at, at + 1))
        place = stop
    found += [None] * (count - len(found))
    return found
