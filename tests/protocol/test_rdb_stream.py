"""Dumped streams: read as they were written, of both kinds, with tombstones; and refusals."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from rlite_pubsub.protocol.rdb import envelope, listpack
from rlite_pubsub.protocol.rdb import stream as streams
from rlite_pubsub.protocol.rdb.envelope import PayloadReader
from rlite_pubsub.protocol.rdb.malformed import Malformed
from rlite_pubsub.protocol.rdb.stream import ConsumerImage, Entry, GroupImage, StreamImage

LIMITS = (100, 4096)
ENTRIES: list[Entry] = [
    ((1, 5), [b"a", b"1", b"b", b"x"]),
    ((1, 6), [b"a", b"", b"b", b"2"]),
    ((2, 0), [b"other", b"1"]),
    ((1 << 63, (1 << 64) - 1), [b"a", b"1", b"b", b"x"]),
    (((1 << 64) - 1, 0), [b"a", b"1", b"a", b"x"]),
]
LAST = ENTRIES[-1][0]
GROUPS = [
    GroupImage(b"g", (2, 0), 3, {(1, 5): (1000, 1), (9, 9): (0, 1 << 62)}, [
        ConsumerImage(b"c", 5000, [(9, 9)]), ConsumerImage(b"12", 0, [(1, 5)]), ConsumerImage(b"idle", 1, [])]),
    GroupImage(b"", (0, 0), None, {}, []),
]  # fmt: skip


def image(**changed: Any) -> StreamImage:
    whole = StreamImage(ENTRIES, len(ENTRIES), LAST, ENTRIES[0][0], (0, 7), 9, GROUPS)
    return whole._replace(**changed)


def read(body: bytes, **limits: int) -> StreamImage:
    return streams.read_stream(body[0], PayloadReader(body[1:], **limits))


def test_a_stream_is_read_as_it_was_written() -> None:
    for limits in (LIMITS, (1, 0), (2, 0), (0, 1), (0, 0)):
        assert read(streams.pack_stream(image(), limits)) == image()


def test_a_stream_of_redis_7_2_is_read_but_for_when_its_consumers_were_active() -> None:
    body = bytes((streams.LATER_STREAM,)) + streams.pack_stream(image(), LIMITS)[1:]
    for consumer in GROUPS[0].consumers:
        seen = envelope.string(consumer.name) + envelope.milliseconds(consumer.seen_ms)
        assert body.count(seen) == 1
        body = body.replace(seen, seen + envelope.milliseconds(-1))
    assert read(body) == image()


def test_nodes_take_no_more_than_they_may() -> None:
    many = [((number, 0), [b"field", b"value"]) for number in range(1, 1001)]
    body = streams.pack_stream(image(entries=many, length=1000, last_id=(1000, 0), entries_added=1000), LIMITS)
    assert body[1] == 10
    read_again = read(body)
    assert read_again.entries == many


def test_an_empty_stream_keeps_its_counters_and_groups() -> None:
    empty = image(entries=[], length=0, first_id=(0, 0))
    assert read(streams.pack_stream(empty, LIMITS)) == empty


def node(*words: int | bytes, master: tuple[int, int] = (5, 0)) -> bytes:
    packed = listpack.pack([b"%d" % word if isinstance(word, int) else word for word in words])
    return envelope.string(master[0].to_bytes(8, "big") + master[1].to_bytes(8, "big")) + envelope.string(packed)


def stream(*nodes: bytes, length: int, last: tuple[int, int] = (9, 9), groups: bytes = b"\0") -> bytes:
    """Of the old kind."""
    counts = b"".join(map(envelope.length, (length, *last)))
    return b"\x0f" + envelope.length(len(nodes)) + b"".join(nodes) + counts + groups


ONE = node(1, 0, 1, b"a", 0, 2, 0, 0, b"v", 4)


def test_a_stream_of_redis_6_has_no_counts() -> None:
    group = b"\x01" + envelope.string(b"g") + b"\x05\x00" + b"\0\0"
    found = read(stream(ONE, length=1, groups=group))
    assert found == StreamImage([((5, 0), [b"a", b"v"])], 1, (9, 9), (5, 0), (0, 0), 1,
                                [GroupImage(b"g", (5, 0), None, {}, [])], is_counted=False)  # fmt: skip


def test_what_was_deleted_in_a_node_is_passed_over() -> None:
    words = node(1, 2, 1, b"a", 0, 3, 0, 0, b"gone", 4, 2, 1, -0, b"v", 4, 1, 1, 1, 1, b"b", b"gone", 6)
    assert read(stream(words, length=1)).entries == [((6, 0), [b"a", b"v"])]


def test_differences_of_ids_may_be_negative() -> None:
    words = node(2, 0, 1, b"a", 0, 2, 0, 0, b"v", 4, 2, 1, -7, b"w", 4, master=(5, 7))
    assert [entry_id for entry_id, _ in read(stream(words, length=2)).entries] == [(5, 7), (6, 0)]


@pytest.mark.parametrize(
    "body",
    [
        stream(ONE, length=2),
        stream(ONE, length=1, last=(4, 0)),
        stream(ONE, ONE, length=2),
        stream(node(1, 0, 1, b"a", 0, 2, 0, 0, b"v", 4, master=(0, 0)), length=1),
        stream(b"\x01a" + ONE, length=1),
        stream(node(), length=0),
        stream(node(0, 0, 1, b"a"), length=0),
        stream(node(0, 0, 1, b"a", 1), length=0),
        stream(node(0, 0, 1 << 62, b"a", 0), length=0),
        stream(node(0, 0, -1, 0), length=0),
        stream(node(b"x", 0, 1, b"a", 0), length=0),
        stream(node(1 << 62, 0, 1, b"a", 0, 2, 0, 0, b"v", 4), length=1),
        stream(node(0, 1, 1, b"a", 0, 2, 0, 0, b"v", 4), length=1),
        stream(node(1, 0, 1, b"a", 0, 2, 0, 0, b"v", 5), length=1),
        stream(node(1, 0, 1, b"a", 0, 2, 0, 0, 4), length=1),
        stream(node(1, 0, 0, 0, 2, 0, 0, 3), length=1),
        stream(node(1, 0, 1, b"a", 0, 0, 0, 0, 0, 4), length=1),
        stream(node(1, 0, 1, b"a", 0, 0, 0, 0, -1, 2), length=1),
        stream(node(1, 0, 1, b"a", 0, 0, 0, 0, 1 << 62, b"f", b"v", 6), length=1),
        stream(node(1, 0, 1, b"a", 0, 2, 0, 0, b"v", 4, b"more"), length=1),
        stream(ONE, length=1, groups=b""),
        stream(ONE, length=1, groups=b"\x02" + b"\x01g\0\0\0\0" * 2),
        stream(ONE, length=1, groups=b"\x01\x01g\0\0" + b"\x01" + bytes(24) + b"\x01\0"),
        stream(ONE, length=1, groups=b"\x01\x01g\0\0" + b"\x02" + (bytes(24) + b"\x01") * 2 + b"\0"),
        stream(ONE, length=1, groups=b"\x01\x01g\0\0\0\x01\x01c" + bytes(8) + b"\x01" + bytes(16)),
        stream(ONE, length=1, groups=b"\x01\x01g\0\0\0\x02" + (b"\x01c" + bytes(8) + b"\0") * 2),
        stream(ONE, length=1, groups=b"\x01\x01g\0\0\0\x01\x01c" + b"\xff" * 8 + b"\0"),
    ],
)
def test_streams_that_are_wrong_are_malformed(body: bytes) -> None:
    with pytest.raises(Malformed):
        read(body)


@pytest.mark.parametrize(
    "changed",
    [
        {"entries_added": 4},
        {"entries_added": (1 << 64) - 1},
        {"groups": [GROUPS[0]._replace(entries_read=1 << 63)]},
        {"groups": [GROUPS[0]._replace(pending={(1, 5): (0, 1 << 63)}, consumers=[ConsumerImage(b"c", 0, [(1, 5)])])]},
        {"groups": [GROUPS[0]._replace(consumers=[ConsumerImage(b"c", 0, [(1, 5), (9, 9), (1, 5)])])]},
    ],
)
def test_counts_that_could_not_go_on_are_malformed(changed: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        read(streams.pack_stream(image(**changed), LIMITS))


def test_names_that_entries_share_count_for_each_of_them() -> None:
    name = b"n" * 1000
    many: list[Entry] = [((number, 0), [name, b""]) for number in range(1, 101)]
    body = streams.pack_stream(image(entries=many, length=100, last_id=(100, 0), entries_added=100), LIMITS)
    assert len(body) < 3000
    with pytest.raises(Malformed):
        read(body, max_unpacked_bytes=100_000)


def test_no_change_of_a_byte_makes_it_fail_otherwise() -> None:
    luck = random.Random(1)
    body = streams.pack_stream(image(), (2, 0))
    for _ in range(10_000):
        changed = bytearray(body)
        for _ in range(luck.choice([1, 1, 2])):
            changed[luck.randrange(1, len(changed))] = luck.randrange(256)
        with suppress(Malformed):
            read(bytes(changed))
