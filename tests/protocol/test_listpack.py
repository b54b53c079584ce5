"""Listpacks: what is packed is read again, its bytes are Redis's, and whatever is wrong is found."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from rlite_pubsub.protocol.rdb import listpack
from rlite_pubsub.protocol.rdb.malformed import Malformed

EDGES = [0, 127, 128, 4095, 4096, -1, -4096, -4097, 32767, 32768, -32768, -32769, 8388607, 8388608, -8388608, -8388609]
EDGES += [2147483647, 2147483648, -2147483648, -2147483649, 9223372036854775807, -9223372036854775808]
WORDS = [b"%d" % number for number in EDGES]
WORDS += [b"9223372036854775808", b"-9223372036854775809", b"-0", b"+1", b"007", b" 1", b"-", b"", b"\xff"]
WORDS += [b"x" * length for length in (62, 63, 64, 124, 125, 126, 127, 4094, 4095, 4096, 16377, 16378, 16379, 2097146)]


@pytest.mark.parametrize("word", WORDS, ids=lambda word: f"{word[:20]!r}-{len(word)}")
def test_every_kind_of_element_is_read_as_it_was_written(word: bytes) -> None:
    assert list(listpack.elements(listpack.pack([word, b"behind"]))) == [word, b"behind"]


@pytest.mark.parametrize(
    ("word", "packed"),
    [
        (b"5", b"\x05\x01"),
        (b"-1", b"\xdf\xff\x02"),
        (b"4095", b"\xcf\xff\x02"),
        (b"4096", b"\xf1\x00\x10\x03"),
        (b"8388607", b"\xf2\xff\xff\x7f\x04"),
        (b"-2147483648", b"\xf3\x00\x00\x00\x80\x05"),
        (b"2147483648", b"\xf4\x00\x00\x00\x80\x00\x00\x00\x00\x09"),
        (b"", b"\x80\x01"),
        (b"abc", b"\x83abc\x04"),
        (b"x" * 64, b"\xe0\x40" + b"x" * 64 + b"\x42"),
        (b"x" * 126, b"\xe0\x7e" + b"x" * 126 + b"\x01\x80"),
        (b"x" * 4096, b"\xf0\x00\x10\x00\x00" + b"x" * 4096 + b"\x20\x85"),
        (b"x" * 16377, b"\xf0\xf9\x3f\x00\x00" + b"x" * 16377 + b"\x7f\xfe"),
        (b"x" * 16378, b"\xf0\xfa\x3f\x00\x00" + b"x" * 16378 + b"\x00\xff\xff"),
    ],
    ids=lambda word: repr(word[:12]),
)
def test_the_bytes_are_those_of_redis(word: bytes, packed: bytes) -> None:
    assert listpack.element(word) == packed


def test_more_elements_than_can_be_counted_are_read() -> None:
    words = [b"1"] * 70_000
    packed = listpack.pack(words)
    assert packed[4:6] == b"\xff\xff"
    assert list(listpack.elements(packed)) == words


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        b"\x07\0\0\0\0\0",
        b"\x07\0\0\0\0\0\0",
        b"\x08\0\0\0\0\0\xff",
        b"\x07\0\0\0\x01\0\xff",
        b"\x09\0\0\0\x01\0\x05\x02\xff",
        b"\x09\0\0\0\x02\0\x05\x01\xff",
        b"\x08\0\0\0\x01\0\x05\xff",
        b"\x09\0\0\0\x01\0\xf5\x01\xff",
        b"\x09\0\0\0\x01\0\xf4\x09\xff",
        b"\x0a\0\0\0\x01\0\xff\x01\x01\xff",
        b"\x0c\0\0\0\x01\0\xf0\xff\xff\xff\xff\xff",
    ],
)
def test_whatever_is_wrong_is_malformed(packed: bytes) -> None:
    with pytest.raises(Malformed):
        list(listpack.elements(packed))


def test_no_change_of_a_byte_makes_it_fail_otherwise() -> None:
    luck = random.Random(1)
    packed = listpack.pack([word for word in WORDS if len(word) < 200])
    for _ in range(5000):
        changed = bytearray(packed)
        changed[luck.randrange(len(changed))] = luck.randrange(256)
        with suppress(Malformed):
            list(listpack.elements(bytes(changed)))
