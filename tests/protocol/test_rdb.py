"""Dumped values: lengths, strings and the seal, and a reader that holds no more than it may."""

from __future__ import annotations

import pytest

from rlite_pubsub.protocol.rdb import envelope
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed

SEALED = bytes.fromhex("00c0050a00")


@pytest.mark.parametrize(
    ("number", "packed"),
    [
        (0, "00"),
        (63, "3f"),
        (64, "4040"),
        (16383, "7fff"),
        (16384, "8000004000"),
        ((1 << 32) - 1, "80ffffffff"),
        (1 << 32, "810000000100000000"),
        ((1 << 64) - 1, "81ffffffffffffffff"),
    ],
)
def test_lengths_are_as_short_as_they_can_be(number: int, packed: str) -> None:
    assert envelope.length(number).hex() == packed
    assert PayloadReader(bytes.fromhex(packed)).length() == number


@pytest.mark.parametrize(
    ("text", "packed"),
    [
        (b"", "00"),
        (b"a", "0161"),
        (b"0", "c000"),
        (b"-128", "c080"),
        (b"128", "c18000"),
        (b"-32769", "c2ff7fffff"),
        (b"2147483647", "c2ffffff7f"),
        (b"2147483648", "0a" + b"2147483648".hex()),
        (b"-0", "022d30"),
        (b"01", "023031"),
    ],
)
def test_strings_that_spell_integers_are_integers(text: bytes, packed: str) -> None:
    assert envelope.string(text).hex() == packed
    assert PayloadReader(bytes.fromhex(packed)).string() == text


def test_packed_strings_are_unpacked() -> None:
    assert PayloadReader(bytes.fromhex("c3050a" + "0061e00000")).string() == b"a" * 10


@pytest.mark.parametrize(
    "packed", ["", "c0", "c101", "c4", "0261", "40", "8000", "82", "c305", "81ffffffffffffffff61"]
)
def test_what_ends_too_early_is_malformed(packed: str) -> None:
    with pytest.raises(Malformed):
        PayloadReader(bytes.fromhex(packed)).string()


def test_a_few_bytes_do_not_become_more_than_may_be() -> None:
    packed = bytes.fromhex("c3050a0061e00000") * 3
    reader = PayloadReader(packed, max_unpacked_bytes=25)
    assert [reader.string(), reader.string()] == [b"a" * 10] * 2
    with pytest.raises(Malformed):
        reader.string()
    with pytest.raises(Malformed):
        list(PayloadReader(b"", max_unpacked_bytes=1000).each(iter(lambda: b"", None)))


def test_a_seal_is_the_version_and_the_sum() -> None:
    sealed = envelope.seal(b"\x00\xc0\x05")
    assert sealed[:-8] == SEALED
    assert envelope.is_sealed(sealed)


def test_another_version_or_another_byte_is_not_sealed() -> None:
    sealed = envelope.seal(b"\x00\xc0\x05")
    assert not any(envelope.is_sealed(sealed[:place]) for place in range(len(sealed)))
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert not envelope.is_sealed(bytes(changed))
    newer = b"\x00\xc0\x05\x0d\x00"
    assert not envelope.is_sealed(newer + envelope.crc64(newer).to_bytes(8, "little"))
    older = b"\x00\xc0\x05\x09\x00"
    assert envelope.is_sealed(older + envelope.crc64(older).to_bytes(8, "little"))
