"""The CRC-64 behind dumped values: polynomial 0xad93d23594c935a9, reflected, beginning with 0 (Redis's choice).

It is the remainder of the bytes, taken as one polynomial, so a long one is first folded upon itself: its front half,
multiplied by what x to the power of the distance leaves, is added to the back half. Those are a few dozen operations
upon integers of its size; bytes are gone through one by one only at the end.
"""

from __future__ import annotations

_POLYNOMIAL = 0x95AC9329AC4BC9B5
"""Reflected: the lowest bit is the highest power."""
_BITS = 64
_FOLDED_BITS = 16_384
"""What is no longer than this is not worth folding."""
_X = 1 << (_BITS - 2)
_SUM_BYTES = _BITS // 8
_SUMMED_AT_ONCE = 1 << 18


def _row(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE = [_row(byte) for byte in range(256)]


def crc64(data: bytes) -> int:
    """Return the sum of these bytes."""
    if len(data) * 8 > _FOLDED_BITS:
        data = _folded(data)
    crc = 0
    table = _TABLE
    for byte in data:
        crc = table[crc & 0xFF ^ byte] ^ crc >> 8
    return crc


class RunningSum:
    """The sum of bytes that come in pieces."""

    __slots__ = ("_crc", "_pieces", "_size")

    def __init__(self) -> None:
        self._crc = 0
        self._pieces: list[bytes] = []  # what is not yet summed up: many small ones cost as much as a large one
        self._size = 0

    def add(self, data: bytes) -> None:
        """Add bytes."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= _SUMMED_AT_ONCE:
            self._sum_up()

    def value(self) -> int:
        """Return the sum of all that came."""
        self._sum_up()
        return self._crc

    def _sum_up(self) -> None:
        data = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        if len(data) < _SUM_BYTES:
            for byte in data:
                self._crc = _TABLE[self._crc & 0xFF ^ byte] ^ self._crc >> 8
        else:  # what came before is a remainder, to be added to what stands in front
            head = int.from_bytes(data[:_SUM_BYTES], "little") ^ self._crc
            self._crc = crc64(head.to_bytes(_SUM_BYTES, "little") + data[_SUM_BYTES:])


def _folded(data: bytes) -> bytes:
    """Fewer bytes of the same remainder."""
    number, bits = int.from_bytes(data, "little"), len(data) * 8
    while bits > _FOLDED_BITS:
        exponent = (bits - 1).bit_length() - 1
        back = 1 << exponent
        front = bits - back
        head = number & (1 << front) - 1
        bits = max(back, front + _BITS)
        number = number >> front << bits - back
        power = _power(exponent)
        while power:
            lowest = power & -power
            place = _BITS - lowest.bit_length()  # the power of x that this bit stands for
            number ^= head << bits - front - place
            power ^= lowest
    more = -bits % 8  # zeros in front change no remainder
    return (number << more).to_bytes((bits + more) // 8, "little")


_POWERS: list[int] = [_X]


def _power(exponent: int) -> int:
    """Return the remainder of x to the power of 2 to the power of `exponent`."""
    while len(_POWERS) <= exponent:
        _POWERS.append(_product(_POWERS[-1], _POWERS[-1]))
    return _POWERS[exponent]


def _product(one: int, other: int) -> int:
    product = 0
    while other:
        if other >> (_BITS - 1):
            product ^= one
        one = one >> 1 ^ (_POLYNOMIAL if one & 1 else 0)
        other = other << 1 & (1 << _BITS) - 1
    return product
