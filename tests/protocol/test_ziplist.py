"""Ziplists: every kind of element is read, and whatever is wrong is found."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from ziplists import ziplist

from rlite_pubsub.protocol.rdb import ziplist as ziplists
from rlite_pubsub.protocol.rdb.malformed import Malformed

NUMBERS: list[bytes | int] = [0, 1, 12, 13, -1, 127, 128, -128, -129, 32767, 32768, -8388608, 8388608]
NUMBERS += [1 << 31, -1 << 63]
WORDS: list[bytes | int] = [b"", b"5", b"x" * 63, b"x" * 64, b"y" * 251, b"y" * 252, b"z" * 16383, b"z" * 16384, 1]


def test_the_bytes_of_the_description_are_its_two_numbers() -> None:
    described = bytes.fromhex("0f0000000c000000020000f302f6ff")
    assert ziplist([2, 5]) == described
    assert list(ziplists.elements(described)) == [b"2", b"5"]


@pytest.mark.parametrize("words", [NUMBERS, WORDS, [*WORDS, *NUMBERS, *WORDS], []])
def test_every_kind_of_element_is_read(words: list[bytes | int]) -> None:
    expected = [b"%d" % word if isinstance(word, int) else word for word in words]
    assert list(ziplists.elements(ziplist(words))) == expected


@pytest.mark.parametrize(
    "packed",
    [
        "",
        "0a0000000a0000000000",
        "0b0000000a000000000000",
        "0c0000000a0000000000ff",
        "0b0000000a0000000100ff",
        "0f0000000a000000020000f302f6ff",
        "0f0000000c000000030000f302f6ff",
        "0f0000000c000000020001f302f6ff",
        "0f0000000c000000020000f303f6ff",
        "0d0000000a000000010000ffff",
        "0d0000000a0000000100003fff",
        "0d0000000a000000010000e0ff",
        "0d0000000a00000001000080ff",
        "0c0000000a000000010000ff",
        "0c0000000a0000000100feff",
    ],
)
def test_whatever_is_wrong_is_malformed(packed: str) -> None:
    with pytest.raises(Malformed):
        list(ziplists.elements(bytes.fromhex(packed)))


def test_no_change_of_a_byte_makes_it_fail_otherwise() -> None:
    luck = random.Random(1)
    packed = ziplist([*NUMBERS, *WORDS[:6], 5])
    for _ in range(5000):
        changed = bytearray(packed)
        changed[luck.randrange(len(changed))] = luck.randrange(256)
        with suppress(Malformed):
            list(ziplists.elements(bytes(changed)))
