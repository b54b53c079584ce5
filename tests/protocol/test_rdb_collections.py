"""Dumped lists, sets and hashes of every kind, and refusals."""

from __future__ import annotations

import pytest
from ziplists import ziplist

from rlite_pubsub.protocol.rdb import collections, envelope, hashes, listpack
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed

WORDS = [b"a", b"5", b"", b"-70000", b"a", b"long" * 3000, b"x" * 70]


def strings(*words: bytes) -> bytes:
    """A count and strings."""
    return envelope.length(len(words)) + b"".join(map(envelope.string, words))


def intset(size: int, *numbers: int) -> bytes:
    head = size.to_bytes(4, "little") + len(numbers).to_bytes(4, "little")
    return envelope.string(head + b"".join(number.to_bytes(size, "little", signed=True) for number in numbers))


def read_list(body: bytes) -> list[bytes]:
    return collections.read_list(body[0], PayloadReader(body[1:]))


def read_set(body: bytes) -> list[bytes]:
    return collections.read_set(body[0], PayloadReader(body[1:]))


def read_hash(body: bytes) -> list[bytes]:
    return hashes.read_hash(body[0], PayloadReader(body[1:]))


def zipmap(count: int, *words: bytes) -> bytes:
    """Fields and values by turns, each value with two bytes that are free behind it."""
    packed = bytes((count,))
    for place, word in enumerate(words):
        packed += bytes((len(word),)) if len(word) < 254 else b"\xfe" + len(word).to_bytes(4, "little")
        packed += b"\x02" + word + b"??" if place % 2 else word
    return envelope.string(packed + b"\xff")


def test_a_list_is_read_as_it_was_written() -> None:
    for words in (WORDS, WORDS * 3000, [b"%d" % number for number in range(20_000)]):
        assert read_list(collections.pack_list(words)) == words


def test_a_set_is_read_as_it_was_written() -> None:
    members = [b"%d" % number for number in range(-3000, 3000)] + [b"", b"x" * 20_000]
    assert read_set(collections.pack_set(members)) == members


def test_a_set_of_integers_is_read_as_it_was_written() -> None:
    for largest in (1 << 15, 1 << 31, 1 << 63):
        members = [b"%d" % number for number in (-largest, -1, 0, 1, largest - 1)]
        packed = collections.pack_intset(members)
        assert packed[0] == 11 and read_set(packed) == members
    assert len(collections.pack_intset([b"32767"])) == len(collections.pack_intset([b"32768"])) - 2


def test_a_hash_is_read_as_it_was_written() -> None:
    words = [b"a", b"1", b"", b"", b"5", b"x" * 70]
    assert read_hash(hashes.pack_small(words)) == words
    assert read_hash(hashes.pack_large(words)) == words


def test_hashes_of_older_kinds_are_read() -> None:
    assert read_hash(b"\x0d" + envelope.string(ziplist([b"a", 5, b"b", b"c"]))) == [b"a", b"5", b"b", b"c"]
    words = [b"a", b"5", b"", b"x" * 300]
    assert read_hash(b"\x09" + zipmap(2, *words)) == words
    assert read_hash(b"\x09" + zipmap(254, *words)) == words
    assert read_hash(b"\x09" + envelope.string(b"\x01\x01a\x01\x00b\xffwhatever\xff")) == [b"a", b"b"]
    long = b"\xfe\x00\x00\x00"
    body = b"\x01\xfe" + long + b"f" * 254 + b"\xff" + long + b"\x01" + b"v" * 254 + b"?\xff"
    assert read_hash(b"\x09" + envelope.string(body)) == [b"f" * 254, b"v" * 254]


def test_a_hash_whose_fields_expire_is_read_as_it_was_written() -> None:
    fields = [(b"a", b"1", 0), (b"b", b"2", 1_700_000_000_000), (b"5", b"", 1_600_000_000_000)]
    packed = hashes.pack_expiring(fields)
    assert packed[:9] == b"\x18" + (1_600_000_000_000).to_bytes(8, "little")
    assert hashes.read_expiring(packed[0], PayloadReader(packed[1:])) == fields


def test_small_hashes_and_sets_of_later_versions_are_read() -> None:
    words = listpack.pack([b"a", b"1", b"1700000000000", b"b", b"2", b"0"])
    body = (1_700_000_000_000).to_bytes(8, "little") + envelope.string(words)
    assert hashes.read_expiring(25, PayloadReader(body)) == [(b"a", b"1", 1_700_000_000_000), (b"b", b"2", 0)]
    assert read_set(b"\x14" + envelope.string(listpack.pack([b"a", b"5"]))) == [b"a", b"5"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (24, bytes(8) + b"\x00"),
        (24, bytes(8) + b"\x01\x00\x01a"),
        (24, bytes(8) + b"\x02\x00\x01a\x01b\x00\x01a\x01b"),
        (24, bytes(8) + b"\x01\x81\x00\x00\x7f" + bytes(5) + b"\x01a\x01b"),
        (25, bytes(8) + envelope.string(listpack.pack([]))),
        (25, bytes(8) + envelope.string(listpack.pack([b"a", b"b"]))),
        (25, bytes(8) + envelope.string(listpack.pack([b"a", b"b", b"c"]))),
        (25, bytes(8) + envelope.string(listpack.pack([b"a", b"b", b"-1"]))),
    ],
)
def test_hashes_whose_fields_expire_wrongly_are_malformed(kind: int, body: bytes) -> None:
    with pytest.raises(Malformed):
        hashes.read_expiring(kind, PayloadReader(body))


def test_lists_of_older_kinds_are_read() -> None:
    assert read_list(b"\x01" + strings(*WORDS)) == WORDS
    assert read_list(b"\x0a" + envelope.string(ziplist([b"a", 5, b"b"]))) == [b"a", b"5", b"b"]
    pages = strings(ziplist([b"a", 5]), ziplist([]), ziplist([-1, b""]))
    assert read_list(b"\x0e" + pages) == [b"a", b"5", b"-1", b""]


def test_a_node_may_be_one_element() -> None:
    body = b"\x12\x02" + b"\x01" + envelope.string(b"x" * 100) + b"\x02" + envelope.string(listpack.pack([b"a", b"b"]))
    assert read_list(body) == [b"x" * 100, b"a", b"b"]


@pytest.mark.parametrize("size", [2, 4, 8])
def test_intsets_are_read(size: int) -> None:
    numbers = (-(1 << 8 * size - 1), -1, 0, 1, (1 << 8 * size - 1) - 1)
    assert read_set(b"\x0b" + intset(size, *numbers)) == [b"%d" % number for number in numbers]


@pytest.mark.parametrize(
    "body",
    [
        b"\x01\x00",
        b"\x01\x02\x01a",
        b"\x01\x81" + b"\xff" * 8 + b"\x01a",
        b"\x0a" + envelope.string(ziplist([])),
        b"\x0e\x00",
        b"\x0e" + strings(ziplist([])),
        b"\x12\x00",
        b"\x12\x01\x02" + envelope.string(listpack.pack([])),
        b"\x12\x01\x03" + envelope.string(listpack.pack([b"a"])),
        b"\x12\x01\x01\x00",
        b"\x12\x02\x02" + envelope.string(listpack.pack([b"a"])),
    ],
)
def test_lists_that_are_wrong_are_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_list(body)


@pytest.mark.parametrize(
    "body",
    [
        b"\x02\x00",
        b"\x02\x02\x01a\x01a",
        b"\x02\x02\xc0\x05\x015",
        b"\x02\x81" + b"\xff" * 8 + b"\x01a",
        b"\x0b" + intset(2),
        b"\x0b" + intset(3, 1),
        b"\x0b" + intset(2, 1, 1),
        b"\x0b" + intset(2, 2, 1),
        b"\x0b\x04\x02\0\0\0",
        b"\x0b\x08\x02\0\0\0\xff\xff\xff\xff",
    ],
)
def test_sets_that_are_wrong_are_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_set(body)


@pytest.mark.parametrize(
    "body",
    [
        b"\x04\x00",
        b"\x04\x01\x01a",
        b"\x04\x02\x01a\x01b\x01a\x01c",
        b"\x04\x81" + b"\xff" * 8 + b"\x01a",
        b"\x09" + zipmap(0),
        b"\x09" + zipmap(1, b"a"),
        b"\x09" + zipmap(1, b"a", b"b", b"c", b"d"),
        b"\x09" + zipmap(2, b"a", b"b", b"a", b"d"),
        b"\x09" + envelope.string(b"\x01\x01a\x05\x00b\xff"),
        b"\x09" + envelope.string(b"\x01\x01a\x01\x05b\xff"),
        b"\x09" + envelope.string(b"\x01\x01a\x00\xff"),
        b"\x09" + envelope.string(b"\x01\xfe\x01\x00\x00\x00a\x01\x00b\xff"),
        b"\x09" + envelope.string(b"\x01\x01a\xfe\x01\x00\x00\x00\x00b\xff"),
        b"\x09" + envelope.string(b"\x01\xfe\xff\xff\xff\xfda\x01\x00b\xff"),
        b"\x09" + zipmap(255, b"a", b"b"),
        b"\x0d" + envelope.string(ziplist([])),
        b"\x0d" + envelope.string(ziplist([b"a"])),
        b"\x10" + envelope.string(listpack.pack([b"a", b"b", b"a", b"c"])),
        b"\x10" + envelope.string(listpack.pack([b"a"])),
    ],
)
def test_hashes_that_are_wrong_are_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read_hash(body)


@pytest.mark.parametrize("kind", [2, 11])
def test_members_are_not_held_beyond_what_may_be(kind: int) -> None:
    body = strings(*[b"%d" % number for number in range(100)]) if kind == 2 else intset(2, *range(100))
    with pytest.raises(Malformed):
        collections.read_set(kind, PayloadReader(body, max_unpacked_bytes=100 * 64))
