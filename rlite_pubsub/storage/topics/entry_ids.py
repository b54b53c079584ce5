"""Ids of entries: `ms-seq` on the wire, two numbers in code, 16 bytes that sort in the same order in the store."""

from __future__ import annotations

from struct import Struct
from typing import Final, TypeAlias

Id: TypeAlias = tuple[int, int]
"""(milliseconds, sequence), each 64 bits without a sign."""

BYTES: Final = 16
PART_MAX: Final = 2**64 - 1
MIN: Final[Id] = (0, 0)
MAX: Final[Id] = (PART_MAX, PART_MAX)

_PACKED: Final = Struct(">QQ")
pack_parts: Final = _PACKED.pack
"""The packing of an id's two numbers, for code where a call less matters."""


def pack(entry_id: Id) -> bytes:
    return _PACKED.pack(*entry_id)


def pack_run(first: Id, count: int) -> list[bytes]:
    """Return this many consecutive ids within one millisecond."""
    ms, seq = first
    head = ms.to_bytes(8, "big")
    if count == 1:
        return [head + seq.to_bytes(8, "big")]
    return [head + number.to_bytes(8, "big") for number in range(seq, seq + count)]


def unpack(packed: bytes, at: int = 0) -> Id:
    return _PACKED.unpack_from(packed, at)


def unpack_all(packed: bytes) -> list[Id]:
    """Return the ids that stand one after the other."""
    return list(_PACKED.iter_unpack(packed))


def text(entry_id: Id) -> bytes:
    return b"%d-%d" % entry_id


def after(entry_id: Id) -> Id | None:
    """Return the next possible id; None after the last."""
    ms, seq = entry_id
    if seq < PART_MAX:
        return ms, seq + 1
    return (ms + 1, 0) if ms < PART_MAX else None


def before(entry_id: Id) -> Id | None:
    """Return the id before; None before the first."""
    ms, seq = entry_id
    if seq:
        return ms, seq - 1
    return (ms - 1, PART_MAX) if ms else None
