"""Ids of events as UUIDs of version 6 (RFC 9562), and back.

    48 bits of 60   milliseconds since 1582-10-15, times 10,000: what `ms` of `ms-seq` says
    13 bits         the first ones of `seq`: tenths of microseconds within the millisecond, never 10,000 of them
    14 bits         the next ones: the clock sequence
    48 bits         `NODE` (11 bits), which marks our own and is no card's address, and the last 37 of `seq`

Promises: ids and UUIDs correspond one to one, with all 64 bits of `seq`; as text and as bytes UUIDs sort as ids do. A
UUID's years end before an id's do: an id beyond 5236, which only a client can have chosen, is shown as `ms-seq`. That
form is read, too.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rlite_pubsub.storage.topics.entry_ids import PART_MAX, Id

EPOCH_MS = 12_219_292_800_000
"""From 1582-10-15 to 1970-01-01."""
TICKS = 10_000
MAX_MS = (1 << 60) // TICKS - EPOCH_MS - 1
LOW_BITS, _CLOCK_BITS = 37, 14
LOW = (1 << LOW_BITS) - 1
CLOCK = (1 << _CLOCK_BITS) - 1
TICK_SHIFT = LOW_BITS + _CLOCK_BITS
_MOST_TICKS = PART_MAX >> TICK_SHIFT
NODE = 0b0110_1011_101
"""The lowest bit of the first eight marks that no card has this address."""
_SHAPE = re.compile(r"([0-9a-f]{8})-([0-9a-f]{4})-6([0-9a-f]{3})-([89ab][0-9a-f]{3})-([0-9a-f]{12})", re.ASCII)
_ENTRY_ID = re.compile(r"([0-9]{1,20})-([0-9]{1,20})", re.ASCII)


def text(entry_id: Id) -> bytes:
    """Return the name of an event's id."""
    ms, seq = entry_id
    if ms > MAX_MS:
        return b"%d-%d" % entry_id
    return b"%b-%04x-%012x" % (
        _time(ms, seq >> TICK_SHIFT),
        0x8000 | (seq >> LOW_BITS & CLOCK),
        NODE << LOW_BITS | (seq & LOW),
    )


@lru_cache(1024)
def _time(ms: int, ticks: int) -> bytes:
    stamp = (ms + EPOCH_MS) * TICKS + ticks
    return b"%08x-%04x-6%03x" % (stamp >> 28, stamp >> 12 & 0xFFFF, stamp & 0xFFF)


def parse(word: str) -> Id | None:
    """Return the id that this names; None if it names none."""
    shaped = _SHAPE.fullmatch(word.lower())
    if shaped is None:
        plain = _ENTRY_ID.fullmatch(word)
        if plain is None:
            return None
        ms, seq = int(plain[1]), int(plain[2])
        return (ms, seq) if ms <= PART_MAX and seq <= PART_MAX else None
    high, middle, low, clock, node = (int(part, 16) for part in shaped.groups())
    ms, ticks = divmod(high << 28 | middle << 12 | low, TICKS)
    ms -= EPOCH_MS
    if ms < 0 or ms > MAX_MS or ticks > _MOST_TICKS or node >> LOW_BITS != NODE:
        return None
    return ms, ticks << TICK_SHIFT | (clock & CLOCK) << LOW_BITS | (node & LOW)
