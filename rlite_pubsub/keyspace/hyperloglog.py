"""HyperLogLogs, in Redis's own representation: strings that estimate how many different elements were added, in 12 kB
at most.

    "HYLL" | encoding u8 (0 dense, 1 sparse) | 3 bytes that nobody uses | cardinality u64 | registers

The cardinality is the last count, little-endian; its highest bit says that it is stale. There are 16,384 registers;
each holds the longest run of zeros, plus one, at the end of the hash of an element that falls to it.

    dense    registers of 6 bits, low bits first
    sparse   00llllll        l+1 registers are 0        01llllll llllllll  l+1 registers are 0
             1vvvvvll        l+1 registers are v+1

A sparse one becomes dense when it would be larger than `hll-sparse-max-bytes`, or a register above 32. Sequences are
split, and up to five are joined again, just as Redis does it, so that both have the same bytes after the same commands.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from rlite_pubsub.storage.keys import key_bytes
from rlite_pubsub.storage.keys.key_bytes import REGISTER_BITS

REGISTERS: Final = 1 << 14
HEAD_BYTES: Final = 16
DENSE, SPARSE = 0, 1
_DENSE_BYTES: Final = HEAD_BYTES + REGISTERS * 6 // 8
_MAGIC: Final = b"HYLL"
_ENCODING_AT: Final = 4
_COUNT_AT: Final = 8
_STALE: Final = 0x80
_HASH_BITS: Final = 64 - 14
_LONGEST_RUN: Final = (1 << REGISTER_BITS) - 1
_register: Final = key_bytes.register
_MASK: Final = (1 << 64) - 1
_BEYOND: Final = -(1 << 63)
_ALPHA: Final = 0.721347520444481703680
_XZERO, _VALUE = 0x40, 0x80
_MOST_IN_SPARSE: Final = 32
_LONGEST_VALUES, _LONGEST_ZEROS = 4, 64
_JOINED: Final = 5
_MANY: Final = 2000
"""So many elements are worth a look at all registers."""


class NotAHyperLogLog(Exception):
    """The string is not a HyperLogLog."""


class Corrupted(Exception):
    """The string says that it is a HyperLogLog, and is damaged."""


def new() -> bytearray:
    """Return one that has not counted anything."""
    most = REGISTERS - 1
    return bytearray(_MAGIC + bytes((SPARSE, 0, 0, 0)) + bytes(8) + bytes((_XZERO | most >> 8, most & 0xFF)))


def opened(value: bytes) -> bytearray:
    """Return a string's HyperLogLog, for changing. Raises NotAHyperLogLog."""
    if len(value) < HEAD_BYTES or value[:4] != _MAGIC or value[_ENCODING_AT] > SPARSE:
        raise NotAHyperLogLog
    if value[_ENCODING_AT] == DENSE and len(value) != _DENSE_BYTES:
        raise NotAHyperLogLog
    return bytearray(value)


def encoding(hll: bytearray) -> int:
    return hll[_ENCODING_AT]


# -- the last count


def make_stale(hll: bytearray) -> None:
    """Mark the last count as stale."""
    hll[HEAD_BYTES - 1] |= _STALE


def last_count(hll: bytearray) -> int | None:
    """Return the last count; None if it is stale."""
    return None if hll[HEAD_BYTES - 1] & _STALE else int.from_bytes(hll[_COUNT_AT:HEAD_BYTES], "little")


def note_count(hll: bytearray, count: int) -> None:
    hll[_COUNT_AT:HEAD_BYTES] = (count & _MASK).to_bytes(8, "little")


# -- adding


class Places:
    """Where some sequences of a sparse one stand: a search begins at the nearest. True as long as nobody else changes
    the HyperLogLog."""

    __slots__ = ("_ats", "_befores", "_firsts")

    def __init__(self) -> None:
        self._firsts, self._ats, self._befores = [0], [HEAD_BYTES], [-1]

    def find(self, hll: bytearray, index: int) -> tuple[int, int, int, int, int]:
        """Return where the sequence of a register stands: (the one before it, or -1; itself; its first register, how
        many it has; bytes it takes). Raises Corrupted."""
        nth = bisect_right(self._firsts, index) - 1
        first, before, known = self._firsts[nth], self._befores[nth], self._ats[nth]
        for piece in _PIECES.finditer(hll, known):
            at, end = piece.span()
            if at - known >= _APART:
                nth, known = nth + 1, at
                self._firsts.insert(nth, first)
                self._ats.insert(nth, at)
                self._befores.insert(nth, before)
            if hll[at] & 0xC0 == _XZERO:
                span = ((hll[at] & 63) << 8 | hll[at + 1]) + 1
                if index < first + span:
                    return before, at, first, span, 2
                first += span
                before = at
                continue
            spans = hll[at:end].translate(_SPANS)
            span = sum(spans)
            if index < first + span:
                ends = list(accumulate(spans))
                nth = bisect_right(ends, index - first)
                return (at + nth - 1 if nth else before), at + nth, first + (ends[nth - 1] if nth else 0), spans[nth], 1
            first += span
            before = end - 1
        raise Corrupted

    def move(self, start: int, added: int) -> None:
        """The sequences behind `start` have changed, and all that follows stands so many bytes later."""
        low = bisect_right(self._ats, start)
        high = bisect_right(self._ats, start + _TOUCHED, low)
        del self._firsts[low:high], self._ats[low:high], self._befores[low:high]
        if added:
            self._ats[low:] = [at + added for at in self._ats[low:]]
            self._befores[low:] = [at + added for at in self._befores[low:]]


def add(hll: bytearray, element: bytes, most_bytes: int, places: Places) -> bool:
    """Add an element; return whether that changed anything. Raises Corrupted."""
    falls_to = _register(element)
    return _raise_register(hll, falls_to >> REGISTER_BITS, falls_to & _LONGEST_RUN, most_bytes, places)


def add_all(hll: bytearray, elements: list[bytes], most_bytes: int) -> bool:
    """Add elements; return whether that changed anything. Raises Corrupted."""
    if len(elements) >= _MANY and (hll[_ENCODING_AT] == DENSE or len(hll) <= most_bytes):
        changed = _add_many(hll, elements, most_bytes)
        if changed is not None:
            return changed
    changed = False
    places = Places()
    for element in elements:
        if add(hll, element, most_bytes, places):
            changed = True
    return changed


def _add_many(hll: bytearray, elements: list[bytes], most_bytes: int) -> bool | None:
    """The same for one that is dense, or will be with all of them: then nobody can tell in which order its registers
    were raised. Returns None, and has changed nothing, if it may stay sparse."""
    try:
        held = registers(hll)
    except Corrupted:  # perhaps where none of the elements falls
        return None
    changed = False
    for element in elements:
        falls_to = _register(element)
        index, value = falls_to >> REGISTER_BITS, falls_to & _LONGEST_RUN
        if value > held[index]:
            held[index] = value
            changed = True
    if hll[_ENCODING_AT] == SPARSE and HEAD_BYTES + (REGISTERS - held.count(0)) // _LONGEST_VALUES <= most_bytes:
        return None
    if changed:
        hll[HEAD_BYTES:] = _packed(held)
        hll[_ENCODING_AT] = DENSE
    return changed


def raise_all(hll: bytearray, held: bytearray, most_bytes: int) -> None:
    """Raise each register to at least what `held` has for it. Raises Corrupted."""
    places = Places()
    for index in range(REGISTERS):
        if hll[_ENCODING_AT] == DENSE:
            hll[HEAD_BYTES:] = _packed(highest(registers(hll), held))
            return
        if held[index]:
            _raise_register(hll, index, held[index], most_bytes, places)


def _raise_register(hll: bytearray, index: int, value: int, most_bytes: int, places: Places) -> bool:
    """Raise a register to at least this value; return whether it was less. Raises Corrupted."""
    if hll[_ENCODING_AT] == DENSE:
        return _raise_dense(hll, index, value)
    if value <= _MOST_IN_SPARSE:
        changed = _raise_sparse(hll, index, value, most_bytes, places)
        if changed is not None:
            return changed
    to_dense(hll)
    return _raise_dense(hll, index, value)


def _raise_dense(hll: bytearray, index: int, value: int) -> bool:
    at, shift = HEAD_BYTES + index * 6 // 8, index * 6 & 7
    both = int.from_bytes(hll[at : at + 2], "little")
    if both >> shift & 63 >= value:
        return False
    size = min(2, len(hll) - at)
    hll[at : at + size] = (both & ~(63 << shift) | value << shift).to_bytes(size, "little")
    return True


def _raise_sparse(hll: bytearray, index: int, value: int, most_bytes: int, places: Places) -> bool | None:
    """Raise a register of a sparse one; return None if it would become too large."""
    before, at, first, span, size = places.find(hll, index)
    code, end = hll[at], len(hll)
    here = (code >> 2 & 31) + 1 if code & _VALUE else 0
    if here >= value:
        return False
    if span == 1 and size == 1:
        hll[at] = _values(value, 1)
    else:
        pieces = b""
        if index != first:
            pieces += _run(here, index - first)
        pieces += bytes((_values(value, 1),))
        last = first + span - 1
        if index != last:
            pieces += _run(here, last - index)
        added = len(pieces) - size
        if added > 0 and end + added > most_bytes:
            return None
        hll[at : at + size] = pieces
    start = before if before >= 0 else HEAD_BYTES
    _join(hll, start)
    places.move(start, len(hll) - end)
    make_stale(hll)
    return True


_APART: Final = 64
_TOUCHED: Final = 24
"""More than a sequence, what takes its place and those that are joined can have, in bytes."""
_PIECES: Final = re.compile(rb"[\x40-\x7f].|[^\x40-\x7f]{1,%d}" % _APART, re.DOTALL)
"""Many registers that are 0, or sequences of one byte each."""
_SPANS: Final = bytes([(byte & 3 if byte & _VALUE else byte & 63) + 1 for byte in range(256)])


def _values(value: int, length: int) -> int:
    return _VALUE | value - 1 << 2 | length - 1


def _run(value: int, length: int) -> bytes:
    """Return this many registers of this value: as many as fit into one byte, or zeros."""
    if value:
        return bytes((_values(value, length),))
    if length > _LONGEST_ZEROS:
        return bytes((_XZERO | length - 1 >> 8, length - 1 & 0xFF))
    return bytes((length - 1,))


def _join(hll: bytearray, at: int) -> None:
    """Join some neighbouring sequences of the same value, from here on."""
    for _ in range(_JOINED):
        if at >= len(hll):
            return
        code = hll[at]
        if not code & _VALUE:
            at += 2 if code & _XZERO else 1
            continue
        if at + 1 < len(hll) and hll[at + 1] & _VALUE and hll[at + 1] >> 2 == code >> 2:
            length = (code & 3) + (hll[at + 1] & 3) + 2
            if length <= _LONGEST_VALUES:
                hll[at : at + 2] = bytes((code & ~3 | length - 1,))
                continue
        at += 1


# -- reading


def runs(hll: bytearray) -> Iterator[tuple[int, int, bool]]:
    """Yield the runs of a sparse one: the registers' value, their number, and whether that takes two bytes. Raises
    Corrupted."""
    at, end = HEAD_BYTES, len(hll)
    while at < end:
        code = hll[at]
        at += 1
        if code & _VALUE:
            yield (code >> 2 & 31) + 1, (code & 3) + 1, False
        elif code & _XZERO:
            if at >= end:
                raise Corrupted
            yield 0, ((code & 63) << 8 | hll[at]) + 1, True
            at += 1
        else:
            yield 0, code + 1, False


def registers(hll: bytearray) -> bytearray:
    """Return the value of each register. Raises Corrupted."""
    if hll[_ENCODING_AT] == SPARSE:
        found = bytearray()
        for value, length, _ in runs(hll):
            found += bytes((value,)) * length
            if len(found) > REGISTERS:  # before a large value grows a thousandfold
                raise Corrupted
        if len(found) != REGISTERS:
            raise Corrupted
        return found
    low, middle, high = hll[HEAD_BYTES::3], hll[HEAD_BYTES + 1 :: 3], hll[HEAD_BYTES + 2 :: 3]
    found = bytearray(REGISTERS)
    found[0::4] = low.translate(_LOW_6)
    found[1::4] = _or(low.translate(_HIGH_2), middle.translate(_LOW_4_UP))
    found[2::4] = _or(middle.translate(_HIGH_4), high.translate(_LOW_2_UP))
    found[3::4] = high.translate(_HIGH_6)
    return found


_LOW_6: Final = bytes([byte & 63 for byte in range(256)])
_HIGH_2: Final = bytes([byte >> 6 for byte in range(256)])
_LOW_4_UP: Final = bytes([(byte & 15) << 2 for byte in range(256)])
_HIGH_4: Final = bytes([byte >> 4 for byte in range(256)])
_LOW_2_UP: Final = bytes([(byte & 3) << 4 for byte in range(256)])
_HIGH_6: Final = bytes([byte >> 2 for byte in range(256)])
_TO_HIGH_2: Final = bytes([(byte & 3) << 6 for byte in range(256)])
_TO_HIGH_4: Final = bytes([(byte & 15) << 4 for byte in range(256)])
_TO_HIGH_6: Final = bytes([(byte & 63) << 2 for byte in range(256)])


def to_dense(hll: bytearray) -> bool:
    """Make it dense; return whether it was not. Raises Corrupted."""
    if hll[_ENCODING_AT] == DENSE:
        return False
    hll[HEAD_BYTES:] = _packed(registers(hll))
    hll[_ENCODING_AT] = DENSE
    return True


def _packed(held: bytearray) -> bytearray:
    """Return the registers of a dense one."""
    first, second, third, fourth = held[::4], held[1::4], held[2::4], held[3::4]
    packed = bytearray(_DENSE_BYTES - HEAD_BYTES)
    packed[0::3] = _or(first, second.translate(_TO_HIGH_2))
    packed[1::3] = _or(second.translate(_HIGH_6), third.translate(_TO_HIGH_4))
    packed[2::3] = _or(third.translate(_HIGH_4), fourth.translate(_TO_HIGH_6))
    return packed


def _or(one: bytearray, other: bytearray) -> bytes:
    """Of two of the same length."""
    return (int.from_bytes(one, "little") | int.from_bytes(other, "little")).to_bytes(len(one), "little")


def highest(one: bytearray, other: bytearray) -> bytearray:
    """Return the higher of each two registers."""
    # All at once, as one large number: where `one` is not less, the subtraction leaves the byte's highest bit.
    a, b = int.from_bytes(one, "little"), int.from_bytes(other, "little")
    tops = ((a | _TOPS) - b) & _TOPS
    mask = tops - (tops >> 7)
    return bytearray((b ^ (a ^ b) & mask).to_bytes(REGISTERS, "little"))


_TOPS: Final = int.from_bytes(b"\x80" * REGISTERS, "little")


def raised(held: bytearray, hll: bytearray) -> bytearray:
    """Return the higher of each register and that of a HyperLogLog; `held` may be changed. Raises Corrupted."""
    if hll[_ENCODING_AT] == DENSE:
        return highest(held, registers(hll))
    at = 0
    for value, length, _ in runs(hll):
        end = at + length
        if end > REGISTERS:
            raise Corrupted
        if value:
            for index in range(at, end):
                if held[index] < value:
                    held[index] = value
        at = end
    if at != REGISTERS:
        raise Corrupted
    return held


def count(held: bytearray) -> int:
    """Estimate how many different elements led to these registers, with Ertl's method, arXiv:1702.01284. Registers that
    no elements can lead to may count more than 63 bits hold: that is the lowest number of 64 bits, as C rounds it."""
    amounts = []
    for value in range(_HASH_BITS + 2):
        rest = held.translate(None, bytes((value,)))
        amounts.append(len(held) - len(rest))
        held = rest
    estimate = REGISTERS * _tau((REGISTERS - amounts[_HASH_BITS + 1]) / REGISTERS)
    for value in range(_HASH_BITS, 0, -1):
        estimate += amounts[value]
        estimate *= 0.5
    estimate += REGISTERS * _sigma(amounts[0] / REGISTERS)
    if estimate == 0:
        return _BEYOND
    counted = _ALPHA * REGISTERS * REGISTERS / estimate
    whole = math.floor(counted)
    return whole + (counted - whole >= 0.5) if counted < -_BEYOND else _BEYOND


def _sigma(x: float) -> float:
    if x == 1.0:
        return math.inf
    y, z = 1.0, x
    while True:
        x *= x
        before = z
        z += x * y
        y += y
        if before == z:
            return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z = 1.0, 1 - x
    while True:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1 - x) ** 2 * y
        if before == z:
            return z / 3
