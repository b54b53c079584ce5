"""Dumped values (DUMP, RESTORE) as redis-server 7.0.15 writes them: what all types have in common.

    type u8 | the value | version u16 | CRC-64 of all before it u64 (both little-endian)

    a length  00llllll | 01llllll +1 | 80 and u32 | 81 and u64, high bytes first
    a string  a length and so many bytes, or c0, c1, c2 and an integer of 1, 2 or 4 bytes (little-endian),
              or c3, length packed, length unpacked, and LZF
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from struct import Struct

from rlite_pubsub.protocol.rdb import lzf
from rlite_pubsub.protocol.rdb.crc64 import crc64
from rlite_pubsub.protocol.rdb.malformed import Malformed

VERSION = 10
LATEST_VERSION = 12
"""Redis 7.4's: for what 7.0.15 has no form."""
MAX_UNPACKED_BYTES = 1 << 30
"""How much memory what a value unpacks to may take: a few bytes can stand for very many."""
ELEMENT_BYTES = 64
"""About what an object takes beside its bytes."""

_SUM = Struct("<Q")
FOOTER_BYTES = 2 + _SUM.size
_MILLISECONDS = Struct("<q")
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,9}")
_INTEGER_BYTES = {0xC0: 1, 0xC1: 2, 0xC2: 4}
_PACKED = 0xC3


def seal(body: bytes, version: int = VERSION) -> bytes:
    """Return a type and a value, with what stands behind them."""
    body += version.to_bytes(2, "little")
    return body + _SUM.pack(crc64(body))


def version_of(payload: bytes) -> int:
    """Of a sealed one."""
    return int.from_bytes(payload[-FOOTER_BYTES : -_SUM.size], "little")


def is_sealed(payload: bytes, *, sum_counts: bool = True) -> bool:
    """Return whether it ends in a known version and in the right sum, if that counts."""
    if len(payload) < FOOTER_BYTES or version_of(payload) > LATEST_VERSION:
        return False
    return not sum_counts or _SUM.pack(crc64(payload[: -_SUM.size])) == payload[-_SUM.size :]


# -- writing


def length(number: int) -> bytes:
    """Return a length, or any other integer of 64 bits without a sign."""
    if number < 1 << 6:
        return bytes((number,))
    if number < 1 << 14:
        return (1 << 14 | number).to_bytes(2, "big")
    if number < 1 << 32:
        return b"\x80" + number.to_bytes(4, "big")
    return b"\x81" + number.to_bytes(8, "big")


def string(text: bytes) -> bytes:
    """Return a string; as an integer, if it spells one of 32 bits."""
    if 0 < len(text) <= 11 and _INTEGER.fullmatch(text) is not None:
        number = int(text)
        for head, size in _INTEGER_BYTES.items():
            if -(1 << 8 * size - 1) <= number < 1 << 8 * size - 1:
                return bytes((head,)) + number.to_bytes(size, "little", signed=True)
    return length(len(text)) + text


def milliseconds(time_ms: int) -> bytes:
    """Return a time."""
    return _MILLISECONDS.pack(time_ms)


# -- reading


class PayloadReader:
    """Takes a payload apart. Raises Malformed where it ends too early, or would become too much."""

    __slots__ = ("_at", "_data", "_left")

    def __init__(self, payload: bytes, max_unpacked_bytes: int = MAX_UNPACKED_BYTES) -> None:
        self._data = payload
        self._at = 0
        self._left = max_unpacked_bytes

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def spend(self, size: int) -> None:
        """Count this much more memory."""
        self._left -= size
        if self._left < 0:
            raise Malformed("a value that unpacks to too much")

    def each(self, elements: Iterable[bytes]) -> Iterator[bytes]:
        """Yield these, as long as there is memory for them."""
        for element in elements:
            self.spend(len(element) + ELEMENT_BYTES)
            yield element

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        end = self._at + size
        if end > len(self._data):
            raise Malformed("a value that ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def byte(self) -> int:
        return self.take(1)[0]

    def length(self) -> int:
        """Return a length, or any other integer of 64 bits without a sign."""
        return self._length(self.byte())

    def _length(self, head: int) -> int:
        if head < 0x40:
            return head
        if head < 0x80:
            return (head & 0x3F) << 8 | self.byte()
        if head == 0x80:
            return int.from_bytes(self.take(4), "big")
        if head == 0x81:
            return int.from_bytes(self.take(8), "big")
        raise Malformed("a length of an unknown kind")

    def pair(self) -> tuple[int, int]:
        """Two integers: an id."""
        return self.length(), self.length()

    def string(self) -> bytes:
        head = self.byte()
        size = _INTEGER_BYTES.get(head)
        if size is not None:
            return b"%d" % int.from_bytes(self.take(size), "little", signed=True)
        if head == _PACKED:
            packed_size, size = self.length(), self.length()
            packed = self.take(packed_size)
            self.spend(size)
            return lzf.unpack(packed, size)
        return self.take(self._length(head))

    def milliseconds(self) -> int:
        """Return a time: not before 1970."""
        time_ms: int = _MILLISECONDS.unpack(self.take(_MILLISECONDS.size))[0]
        if time_ms < 0:
            raise Malformed("a time before all times")
        return time_ms
