"""XXH3 of 64 bits, without a seed: what DIGEST answers, and what IFDEQ and IFDNE compare (Redis 8.4)."""

from __future__ import annotations

from struct import Struct

_MASK = (1 << 64) - 1
_32_1, _32_2, _32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_64_1, _64_2, _64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_64_4, _64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MIX_1, _MIX_2 = 0x165667919E3779F9, 0x9FB21C651E98DF25
_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE_BYTES = 64
_STRIPES_IN_BLOCK = (len(_SECRET) - _STRIPE_BYTES) // 8
_BLOCK_BYTES = _STRIPE_BYTES * _STRIPES_IN_BLOCK
_LANES = Struct("<8Q")
_WORD = Struct("<Q")
_HALF = Struct("<I")


def digest(data: bytes) -> int:
    """Return the XXH3 digest of `data`, of 64 bits."""
    size = len(data)
    if size <= 16:
        return _tiny(data)
    if size <= 128:
        return _short(data)
    return _middle(data) if size <= 240 else _long(data)


def _word(data: bytes, at: int) -> int:
    found: int = _WORD.unpack_from(data, at)[0]
    return found


def _half(data: bytes, at: int) -> int:
    found: int = _HALF.unpack_from(data, at)[0]
    return found


def _folded(one: int, other: int) -> int:
    """Both halves of their product."""
    product = one * other
    return (product ^ product >> 64) & _MASK


def _avalanche(number: int) -> int:
    number = (number ^ number >> 37) * _MIX_1 & _MASK
    return number ^ number >> 32


def _old_avalanche(number: int) -> int:
    number = (number ^ number >> 33) * _64_2 & _MASK
    number = (number ^ number >> 29) * _64_3 & _MASK
    return number ^ number >> 32


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> 64 - bits) & _MASK


def _tiny(data: bytes) -> int:
    size = len(data)
    if not size:
        return _old_avalanche(_word(_SECRET, 56) ^ _word(_SECRET, 64))
    if size < 4:
        packed = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _old_avalanche(packed ^ _half(_SECRET, 0) ^ _half(_SECRET, 4))
    if size <= 8:
        number = _half(data, size - 4) + (_half(data, 0) << 32) ^ _word(_SECRET, 8) ^ _word(_SECRET, 16)
        number ^= _turned(number, 49) ^ _turned(number, 24)
        number = number * _MIX_2 & _MASK
        number = (number ^ (number >> 35) + size) * _MIX_2 & _MASK
        return number ^ number >> 28
    low = _word(data, 0) ^ _word(_SECRET, 24) ^ _word(_SECRET, 32)
    high = _word(data, size - 8) ^ _word(_SECRET, 40) ^ _word(_SECRET, 48)
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(size + swapped + high + _folded(low, high) & _MASK)


def _mixed(data: bytes, at: int, secret_at: int) -> int:
    """16 bytes."""
    return _folded(
        _word(data, at) ^ _word(_SECRET, secret_at), _word(data, at + 8) ^ _word(_SECRET, secret_at + 8)
    )


def _short(data: bytes) -> int:
    size = len(data)
    number = size * _64_1
    for pair in range((size - 1) // 32 + 1):
        number += _mixed(data, 16 * pair, 32 * pair) + _mixed(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(number & _MASK)


def _middle(data: bytes) -> int:
    size = len(data)
    number = size * _64_1 + sum([_mixed(data, 16 * place, 16 * place) for place in range(8)])
    number = _avalanche(number & _MASK)
    number += sum([_mixed(data, 16 * place, 16 * (place - 8) + 3) for place in range(8, size // 16)])
    return _avalanche(number + _mixed(data, size - 16, 136 - 17) & _MASK)


def _long(data: bytes) -> int:
    size = len(data)
    lanes = [_32_3, _64_1, _64_2, _64_3, _64_4, _32_2, _64_5, _32_1]
    last = size - 1
    for at in range(0, last // _STRIPE_BYTES * _STRIPE_BYTES, _STRIPE_BYTES):
        place = at % _BLOCK_BYTES
        _take(lanes, data, at, place // 8)
        if place == _BLOCK_BYTES - _STRIPE_BYTES:
            _scramble(lanes)
    _take(lanes, data, size - _STRIPE_BYTES, len(_SECRET) - _STRIPE_BYTES - 7)
    number = size * _64_1
    for pair in range(4):
        one = lanes[2 * pair] ^ _word(_SECRET, 11 + 16 * pair)
        number += _folded(one, lanes[2 * pair + 1] ^ _word(_SECRET, 19 + 16 * pair))
    return _avalanche(number & _MASK)


def _take(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    """One stripe."""
    for lane, (word, secret) in enumerate(
        zip(_LANES.unpack_from(data, at), _LANES.unpack_from(_SECRET, secret_at), strict=True)
    ):
        key = word ^ secret
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & _MASK
        lanes[lane] = lanes[lane] + (key & 0xFFFFFFFF) * (key >> 32) & _MASK


def _scramble(lanes: list[int]) -> None:
    for lane, secret in enumerate(_LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE_BYTES)):
        number = lanes[lane]
        lanes[lane] = (number ^ number >> 47 ^ secret) * _32_1 & _MASK
