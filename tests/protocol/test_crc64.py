"""CRC-64: of short inputs byte by byte, of long ones folded, and both the same."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.protocol.rdb.crc64 import crc64

POLYNOMIAL = 0x95AC9329AC4BC9B5


def bit_by_bit(data: bytes) -> int:
    """As slow and plain as can be."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
    return crc


def test_the_check_value_is_that_of_the_catalogue() -> None:
    assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA


@pytest.mark.parametrize("length", [0, 1, 2047, 2048, 2049, 2056, 2057, 4095, 4096, 4097, 4105, 8193, 20_001])
def test_what_is_folded_has_the_sum_of_its_bytes(length: int) -> None:
    data = random.Random(length).randbytes(length)
    assert crc64(data) == bit_by_bit(data)
    assert crc64(bytes(length)) == 0


def test_every_bit_of_a_long_input_counts() -> None:
    data = bytearray(random.Random(1).randbytes(9000))
    whole = crc64(bytes(data))
    for place in (0, 1, 4500, 8191, 8192, 8999):
        data[place] ^= 1
        assert crc64(bytes(data)) != whole
        data[place] ^= 1
