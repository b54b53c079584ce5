"""Where redis-server would have put entries: the sizes of listpacks, and which entries share a node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.nodes import MAX_KNOWN, NodeLimits, Nodes, integer_bytes, text_bytes, words_of
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id


class Log:
    """Entries under the ids 1-0, 2-0, …"""

    def __init__(self) -> None:
        self.entries: dict[Id, bytes] = {}
        self.added = 0

    def add(self, *words: bytes) -> Id:
        self.added += 1
        entry_id = self.added, 0
        self.entries[entry_id] = encode_entry(entry_id, words or (b"f", b"v"))
        return entry_id

    def after(self, entry_id: Id) -> Iterator[tuple[bytes, bytes]]:
        return iter([(entry_ids.pack(key), entry) for key, entry in self.entries.items() if key > entry_id])


def shape(nodes: Nodes) -> list[tuple[int, int]]:
    return [(node.live, node.dead) for node in nodes.known]


FIVE = NodeLimits(5, 0)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.mark.parametrize(
    ("number", "size"),
    [(0, 2), (127, 2), (128, 3), (-1, 3), (4095, 3), (-4096, 3), (4096, 4), (-4097, 4), (32767, 4), (-32768, 4),
     (32768, 5), (8388607, 5), (-8388608, 5), (8388608, 6), (2**31 - 1, 6), (-(2**31), 6), (2**31, 10), (-(2**63), 10)],
)  # fmt: skip
def test_integers_take_what_they_take_in_a_listpack_also_as_text(number: int, size: int) -> None:
    assert integer_bytes(number) == size
    assert text_bytes(b"%d" % number) == size


@pytest.mark.parametrize(
    ("text", "size"),
    [(b"", 2), (b"01", 4), (b"-0", 4), (b"+1", 4), (b"-", 3), (b"9223372036854775808", 21), (b"v" * 63, 65),
     (b"v" * 64, 67), (b"v" * 125, 128), (b"v" * 126, 130), (b"v" * 4095, 4099), (b"v" * 4096, 4103),
     (b"v" * 20000, 20008), (b"v" * 3_000_000, 3_000_009)],
)  # fmt: skip
def test_other_text_takes_its_length_and_two_headers(text: bytes, size: int) -> None:
    assert text_bytes(text) == size


def test_words_are_cut_out_whatever_bytes_they_have() -> None:
    words = [b"", b"\r\n", b"$5\r\nhello\r\n", b"plain", b"\x00\xff", b"*2\r\n"]
    assert words_of(encode_entry((1, 2), words)) == words
    assert words_of(encode_entry((1, 2), [b"a", b"b"])) == [b"a", b"b"]


def test_a_node_takes_so_many_entries_deleted_ones_included(log: Log) -> None:
    nodes = Nodes(log.after)
    for _ in range(4):
        log.add()
    nodes.note_deleted(FIVE, [(2, 0)])
    del log.entries[2, 0]
    for _ in range(3):
        log.add()
    nodes.learn_all(FIVE)
    assert shape(nodes) == [(4, 1), (2, 0)]


def test_a_node_takes_so_many_bytes_and_fields_that_repeat_are_free(log: Log) -> None:
    """Sizes as DEBUG STREAM would show them: 7 of the listpack, 4 of counts, the names, the zero, then entries."""
    nodes = Nodes(log.after)
    log.add(b"name", b"v" * 50)
    nodes.learn_all(NodeLimits(0, 4096))
    first = nodes.known[0].size + 4
    assert first == 7 + 4 + 2 + 6 + 2 + (6 + 52 + 2)
    log.add(b"name", b"v" * 50)
    log.add(b"nome", b"v" * 50)
    nodes.learn_all(NodeLimits(0, first + 54 + 1))
    assert shape(nodes) == [(2, 0), (1, 0)]
    again = Nodes(log.after)
    again.learn_all(NodeLimits(0, first + 54))
    assert shape(again) == [(1, 0), (1, 0), (1, 0)]
    loose = Nodes(log.after)
    loose.learn_all(NodeLimits(0, 4096))
    assert loose.known[0].size == nodes.known[0].size + (6 + 6 + 2 + 52 + 2)


def test_a_node_without_entries_is_gone_and_the_one_before_takes_more(log: Log) -> None:
    nodes = Nodes(log.after)
    small = NodeLimits(0, 120)
    log.add(b"f", b"v")
    log.add(b"f", b"v" * 90)
    nodes.note_deleted(small, [(2, 0)])
    del log.entries[2, 0]
    log.add(b"f", b"w")
    nodes.learn_all(small)
    assert shape(nodes) == [(2, 0)]


def test_a_deletion_in_the_middle_is_known_though_the_entry_is_not_any_more(log: Log) -> None:
    for _ in range(12):
        log.add()
    nodes = Nodes(log.after)
    nodes.note_deleted(FIVE, [(6, 0), (7, 0)])
    del log.entries[6, 0], log.entries[7, 0]
    kept = Nodes(log.after, nodes.pack())
    kept.learn_all(FIVE)
    assert shape(kept) == [(5, 0), (3, 2), (2, 0)]


def test_limits_hold_for_what_is_added_under_them(log: Log) -> None:
    nodes = Nodes(log.after)
    for _ in range(3):
        log.add()
    nodes.learn_all(FIVE)
    for _ in range(3):
        log.add()
    nodes.learn_all(NodeLimits(2, 0))
    assert shape(nodes) == [(3, 0), (2, 0), (1, 0)]


def test_a_trim_by_id_can_leave_a_node_without_entries(log: Log) -> None:
    nodes = Nodes(log.after)
    for _ in range(5):
        log.add()
    nodes.note_deleted(FIVE, [(5, 0)])
    del log.entries[5, 0]
    assert nodes.note_trimmed(FIVE, 4, (5, 0))
    log.entries.clear()
    assert shape(nodes) == [(0, 5)]
    nodes.drop_empty((5, 0))
    assert shape(nodes) == [(0, 5)]
    nodes.drop_empty((5, 1))
    assert shape(nodes) == []


def test_what_is_kept_has_a_bound(log: Log) -> None:
    for _ in range(5 * MAX_KNOWN + 50):
        log.add()
    nodes = Nodes(log.after)
    nodes.note_deleted(FIVE, [(5 * MAX_KNOWN + 30, 0)])
    assert len(nodes.known) <= MAX_KNOWN
    assert len(nodes.pack()) < 2 * 4096
    assert not nodes.note_trimmed(FIVE, 5 * MAX_KNOWN + 40, None)


def test_the_first_node_is_found_out_without_the_others(log: Log) -> None:
    for _ in range(100):
        log.add()
    nodes = Nodes(log.after)
    first = nodes.first(FIVE)
    assert first is not None
    assert (first.live, first.first, first.last) == (5, (1, 0), (5, 0))
    assert len(nodes.known) == 2


@pytest.mark.parametrize(
    ("entries", "most"), [(100, 10_000), (0, 10_000), (1, 100), (10**7, 10**6), (2**63 // 100 + 1, 10_000)]
)
def test_a_trim_without_a_limit_has_that_of_a_hundred_nodes(entries: int, most: int) -> None:
    assert NodeLimits(entries, 4096).most_trimmed == most
