"""LZF: literals, repetitions that reach into themselves, and refusals."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from rlite_pubsub.protocol.rdb import lzf
from rlite_pubsub.protocol.rdb.malformed import Malformed


@pytest.mark.parametrize(
    ("packed", "unpacked"),
    [
        (b"", b""),
        (b"\x02abc", b"abc"),
        (b"\x1f" + b"x" * 32, b"x" * 32),
        (b"\x00a\x20\x00", b"aaaa"),
        (b"\x01ab\x40\x01", b"ababab"),
        (b"\x02abc\xc0\x02", b"abc" + b"abcabcab"),
        (b"\x00a\xe0\x00\x00", b"a" * 10),
        (b"\x00a\xe0\xff\x00", b"a" * 265),
        (b"\x02abc\x20\x02\x00z", b"abcabcz"),
    ],
)
def test_what_was_packed_is_what_it_was(packed: bytes, unpacked: bytes) -> None:
    assert lzf.unpack(packed, len(unpacked)) == unpacked


def test_a_repetition_reaches_back_eight_thousand_bytes() -> None:
    start = random.Random(1).randbytes(8192)
    literals = b"".join(b"\x1f" + start[at : at + 32] for at in range(0, 8192, 32))
    assert lzf.unpack(literals + b"\x3f\xff", 8195) == start + start[:3]


@pytest.mark.parametrize(
    "packed", [b"\x02ab", b"\x00a\x20", b"\x00a\xe0", b"\x00a\xe0\x00", b"\x20\x00", b"\x00a\x20\x01"]
)
def test_what_ends_early_or_repeats_nothing_is_malformed(packed: bytes) -> None:
    for size in range(12):
        with pytest.raises(Malformed):
            lzf.unpack(packed, size)


@pytest.mark.parametrize("size", [0, 9, 11, 264, 10**15])
def test_another_size_than_was_told_is_malformed(size: int) -> None:
    with pytest.raises(Malformed):
        lzf.unpack(b"\x00a\xe0\x00\x00", size)


def test_what_becomes_too_much_is_not_held() -> None:
    packed = b"\x00a" + b"\xe0\xff\x00" * 30_000
    tracemalloc.start()
    try:
        with pytest.raises(Malformed):
            lzf.unpack(packed, 1000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
