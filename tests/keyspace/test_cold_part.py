"""A topic whose oldest entries are in blocks, beside one that has none: nobody can tell them apart."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.keyspace.topic import sealing
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss, ColdUnreadable, Shelf
from rlite_pubsub.keyspace.topic.sealing import Contents
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.keyspace.topic.trimming import about_to_length, from_id, to_length
from rlite_pubsub.storage.cold import cold_blocks
from rlite_pubsub.storage.cold.cold_blocks import BlockInfo, GroupInfo
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.topics import chunks, entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk
from rlite_pubsub.storage.topics.entry_ids import Id

COLD, PLAIN = b"cold", b"plain"
GROUP = 7
"""Entries of a row group, here."""


class Place:
    """Where blocks are, here: in memory."""

    def __init__(self) -> None:
        self.groups: dict[tuple[str, int], Chunk] = {}

    def write(self, path: str, found: list[Chunk]) -> tuple[BlockInfo, Contents]:
        ids = [chunk.id(place) for chunk in found for place in range(chunk.count)]
        entries = [entry for chunk in found for entry in chunk.entries()]
        groups = []
        for number, at in enumerate(range(0, len(ids), GROUP)):
            part = slice(at, at + GROUP)
            self.groups[path, number] = Chunk(b"", chunks.pack(ids[part], entries[part]))
            of_group = [entry_ids.unpack(packed) for packed in ids[part]]
            size = sum(map(len, entries[part]))
            groups.append(GroupInfo(of_group[0], of_group[-1], len(of_group), size))
        sizes = [len(entry) for entry in entries]
        first, last = groups[0].first, groups[-1].last
        block = BlockInfo(path, first, last, len(ids), sum(sizes), 1, bytes(32), 0, tuple(groups))
        return block, Contents(ids, sizes)

    def load(self, block: BlockInfo, number: int) -> Chunk:
        return self.groups[block.path, number]


class House:
    """Two topics to which the same happens, of which one is sealed now and then."""

    def __init__(self, environment: Environment) -> None:
        self.keyspace = Keyspace(environment, lambda: 1000)
        self.place = Place()
        self.keyspace.cold.shelf = Shelf(self.place.load, None, lambda: 1 << 20)
        self.blocks = 0
        self.next = 1

    def topics(self) -> tuple[Topic, Topic]:
        found = []
        for name in (COLD, PLAIN):
            topic = self.keyspace.for_change(0, name)
            found.append(topic if isinstance(topic, Topic) else self.keyspace.create_topic(0, name))
        return found[0], found[1]

    @property
    def cold(self) -> Topic:
        return self.topics()[0]

    def append(self, count: int, size: int) -> None:
        for number in range(self.next, self.next + count):
            for topic in self.topics():
                topic.append((number, number % 3), encode_entry((number, number % 3), (b"f", b"v" * size)))
        self.next += count

    def end(self) -> None:
        assert self.keyspace.end_turn() is None

    def prepare(self, size_bytes: int) -> tuple[BlockInfo, Contents] | None:
        """Write a block of the oldest hot entries, and tell the topic of it."""
        topic = self.cold
        txn = topic.settle()
        if sealing.unfinished(txn, topic) is not None:
            return None
        found = list(sealing.oldest(txn, topic, size_bytes))
        if not found:
            return None
        self.blocks += 1
        prepared = self.place.write(f"block-{self.blocks}", found)
        sealing.begin(topic, prepared[0])
        self.end()
        return prepared

    def seal(self, size_bytes: int = 1 << 20) -> None:
        prepared = self.prepare(size_bytes)
        if prepared is not None:
            self.move(*prepared)

    def move(self, block: BlockInfo, contents: Contents) -> None:
        while sealing.move(self.cold, block, contents):
            self.end()
        self.end()


@pytest.fixture
def house(store: Store) -> House:
    return House(store.data)


def content(topic: Topic, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None) -> bytes:
    return b"".join(part.wire for part in topic.between(start, end, limit))


def backward(topic: Topic, start: Id = entry_ids.MIN, end: Id = entry_ids.MAX, limit: int | None = None) -> list[bytes]:
    return [
        entry
        for part in topic.backward(start, end, limit)
        for entry in reversed(part.chunk.entries(part.start, part.stop))
    ]


def assert_alike(house: House, dice: random.Random) -> None:
    cold, plain = house.topics()
    assert content(cold) == content(plain)
    assert backward(cold) == backward(plain)
    for read in ("length", "size_bytes", "first_id", "last_id", "trimmed", "max_deleted_id"):
        assert getattr(cold, read) == getattr(plain, read), read
    assert plain.trimmed_id <= cold.trimmed_id  # the last id of a block, though that entry may have been deleted before
    assert not cold.length or cold.trimmed_id < cold.first_id
    for _ in range(5):
        start, end = (dice.randrange(house.next + 2), 0), (dice.randrange(house.next + 2), dice.randrange(3))
        limit = dice.choice([None, 0, 1, 2, 5, 50])
        assert content(cold, start, end, limit) == content(plain, start, end, limit)
        assert backward(cold, start, end, limit) == backward(plain, start, end, limit)
    wanted = sorted(entry_ids.pack((dice.randrange(house.next + 2), dice.randrange(3))) for _ in range(9))
    assert cold.entries(wanted) == plain.entries(wanted)
    house.end()


@pytest.mark.parametrize("seed", range(12))
def test_a_topic_with_blocks_is_read_trimmed_and_deleted_from_as_one_without(house: House, seed: int) -> None:
    dice = random.Random(seed)
    prepared: tuple[BlockInfo, Contents] | None = None
    house.append(30, 200)
    for _ in range(120):
        step = dice.randrange(9)
        if step < 3:
            house.append(dice.randrange(40), dice.choice([1, 300, 900, 5000]))
        elif step == 3 and prepared is None:
            house.seal(dice.choice([1, 5000, 50_000]))
        elif step == 4:  # half-way: what happens next happens between two steps of the sealing
            if prepared is None:
                prepared = house.prepare(dice.choice([5000, 50_000]))
            elif cold_blocks.last(house.cold.settle(), house.cold.number) == prepared[0]:
                if not sealing.move(house.cold, *prepared):
                    prepared = None
            else:  # it was trimmed away
                prepared = None
        elif step == 5:
            cold, plain = house.topics()
            count = dice.randrange(40)
            wanted = max(cold.length - count, 0)
            assert to_length(cold, wanted) == to_length(plain, wanted)
        elif step == 6:
            cold, plain = house.topics()
            first = cold.first_id[0]
            below = (first + dice.randrange(20), 1)
            assert from_id(cold, below) == from_id(plain, below)
        elif step in (7, 8):
            ids = [(dice.randrange(house.next + 2), dice.randrange(3)) for _ in range(dice.choice([1, 30]))]
            cold, plain = house.topics()
            assert cold.delete(ids) == plain.delete(ids)
        house.end()
        assert_alike(house, dice)


def test_an_approximate_trim_takes_whole_blocks_and_reads_none(house: House) -> None:
    house.append(200, 300)
    house.seal(20_000)
    house.seal(20_000)
    house.place.groups.clear()
    first = house.cold.cold.state.first_live
    assert about_to_length(house.cold, house.cold.length - first - 1, 100) == first
    house.end()


def test_the_last_chunk_stays_hot_so_that_entries_can_be_put_into_it(house: House) -> None:
    house.append(100, 300)
    house.seal()
    assert 0 < house.cold.cold.state.live < 100
    assert house.prepare(1) is None
    house.append(1, 300)
    assert_alike(house, random.Random(0))


def test_a_deleted_topic_leaves_no_block_and_its_files_are_to_be_dropped(house: House) -> None:
    house.append(200, 300)
    house.seal(20_000)
    house.keyspace.cold.grace_ms = 5
    house.keyspace.delete(0, COLD)
    house.end()
    while sweep_some(house.keyspace.parts, 1):
        house.end()
    left = house.keyspace.reading()
    assert not [key for key, _ in left.cursor() if key[:1] in (b"O", b"V")]
    assert cold_blocks.dropped(left, 1004, 9) == []
    assert cold_blocks.dropped(left, 1005, 9) == [(1005, "block-1")]
    house.end()


def test_a_copy_shares_the_blocks_and_a_file_goes_with_the_last_that_has_it(house: House) -> None:
    house.append(200, 300)
    house.seal(20_000)
    house.cold.delete([(3, 0)])
    copied = house.keyspace.create_topic(0, b"copy")
    copied.copy_from(house.cold)
    house.end()
    assert content(copied) == content(house.cold)
    for name, dropped in ((COLD, 0), (b"copy", 1)):
        house.keyspace.delete(0, name)
        house.end()
        while sweep_some(house.keyspace.parts, 100):
            house.end()
        assert len(cold_blocks.dropped(house.keyspace.reading(), 1 << 60, 9)) == dropped
        house.end()


class Elsewhere:
    """Another thread, which does its work when it is told to."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Chunk], Callable[[Chunk | Exception], None]]] = []

    def __call__(self, work: Callable[[], Chunk], done: Callable[[Chunk | Exception], None]) -> None:
        self.waiting.append((work, done))

    def work_off(self) -> None:
        waiting, self.waiting = self.waiting, []
        for work, done in waiting:
            try:
                found: Chunk | Exception = work()
            except Exception as failure:
                found = failure
            done(found)


def test_who_can_wait_is_told_what_is_missing_and_finds_it_when_it_is_there(house: House) -> None:
    house.append(200, 300)
    house.seal(20_000)
    elsewhere = Elsewhere()
    shelf = house.keyspace.cold.shelf = Shelf(house.place.load, elsewhere, lambda: 1)
    shelf.may_miss = True
    called: list[int] = []
    with pytest.raises(ColdMiss) as miss:
        content(house.cold)
    unpin = shelf.fetch(miss.value, lambda: called.append(1))
    elsewhere.work_off()
    assert called == [1]
    cold, plain = house.topics()
    assert content(cold) == content(plain)  # all of it, though it is more than there may be
    unpin()
    shelf.fetch(miss.value, lambda: None)
    elsewhere.work_off()
    house.end()


def test_the_next_row_group_is_fetched_while_one_is_read(house: House) -> None:
    house.append(200, 300)
    house.seal(20_000)
    elsewhere = Elsewhere()
    shelf = house.keyspace.cold.shelf = Shelf(house.place.load, elsewhere, lambda: 1 << 20)
    shelf.may_miss = True
    with pytest.raises(ColdMiss) as miss:
        content(house.cold, limit=3)
    assert len(miss.value.wanted) == 1
    shelf.fetch(miss.value, lambda: None)
    elsewhere.work_off()
    assert content(house.cold, limit=3)
    elsewhere.work_off()
    assert shelf.fetched == 2
    house.end()


def test_a_block_that_cannot_be_read_is_named_and_the_rest_stays_readable(house: House) -> None:
    house.append(300, 300)
    house.seal(20_000)
    house.seal(20_000)
    second = next(block for block in cold_blocks.forward(house.cold.settle(), house.cold.number) if "2" in block.path)
    for key in [key for key in house.place.groups if key[0] == "block-1"]:
        del house.place.groups[key]
    with pytest.raises(ColdUnreadable, match="block-1"):
        content(house.cold)
    cold, plain = house.topics()
    assert content(cold, second.first) == content(plain, second.first)
    house.end()


def test_without_a_cold_store_what_is_in_it_is_refused_and_what_is_hot_is_read(house: House) -> None:
    house.append(200, 300)
    house.seal(20_000)
    house.keyspace.cold.shelf = None
    with pytest.raises(ColdUnreadable, match="cold"):
        content(house.cold)
    cold, plain = house.topics()
    hot = sealing.hot_from(cold)
    assert content(cold, hot) == content(plain, hot)
    house.append(1, 1)
    house.end()


def test_what_was_put_into_a_chunk_of_a_block_that_is_being_sealed_stays_hot(house: House) -> None:
    house.append(60, 300)
    house.append(1, 3500)  # so that the chunk before the last has room
    house.append(1, 3900)
    prepared = house.prepare(1 << 20)
    assert prepared is not None
    for topic in house.topics():
        topic.delete([(62, 2)])  # the last chunk goes, and the one before is the last
    house.end()
    house.append(3, 10)
    house.end()
    assert_alike(house, random.Random(0))
    house.move(*prepared)
    assert_alike(house, random.Random(0))
    assert house.cold.cold.state.live == 61


def test_a_block_of_which_nothing_is_left_when_it_is_sealed_goes(house: House) -> None:
    house.append(100, 300)
    prepared = house.prepare(10_000)
    assert prepared is not None
    for topic in house.topics():
        to_length(topic, 3)
    house.end()
    house.move(*prepared)
    assert_alike(house, random.Random(0))
    assert not house.cold.has_cold
    assert [path for _, path in cold_blocks.dropped(house.keyspace.reading(), 1 << 60, 9)] == ["block-1"]
    house.end()


def test_a_block_that_is_being_sealed_is_not_dropped_by_an_approximate_trim_that_finds_nothing_in_it(
    house: House,
) -> None:
    house.append(100, 300)
    prepared = house.prepare(10_000)
    assert prepared is not None
    for topic in house.topics():
        assert about_to_length(topic, 100, 100) == 0
    house.end()
    assert house.cold.has_cold
    house.move(*prepared)
    assert_alike(house, random.Random(0))


def test_the_file_of_a_block_that_was_dropped_and_is_written_again_stays(house: House) -> None:
    house.append(100, 300)
    prepared = house.prepare(10_000)
    assert prepared is not None
    house.cold.trim_first_block()  # before any of it had left the hot log
    house.end()
    assert cold_blocks.dropped(house.keyspace.reading(), 1 << 60, 9)
    house.end()
    sealing.begin(house.cold, prepared[0])
    house.end()
    house.move(*prepared)
    assert not cold_blocks.dropped(house.keyspace.reading(), 1 << 60, 9)
    assert_alike(house, random.Random(0))


def test_ids_that_are_given_again_after_all_was_trimmed_are_there_when_they_are_sealed(house: House) -> None:
    house.append(100, 300)
    prepared = house.prepare(10_000)
    assert prepared is not None
    house.move(*prepared)
    for topic in house.topics():
        to_length(topic, 0)
    house.end()
    for topic in house.topics():
        topic.set_last_id((1, 0))
    house.end()
    house.next = 2
    house.append(200, 300)
    house.end()
    assert_alike(house, random.Random(0))
    house.seal(20_000)
    assert house.cold.cold.state.live
    assert_alike(house, random.Random(0))


def test_ids_that_are_given_again_while_a_block_is_being_sealed_are_there(house: House) -> None:
    house.append(100, 300)
    prepared = house.prepare(10_000)
    assert prepared is not None
    for topic in house.topics():
        topic.delete([(number, number % 3) for number in range(101)])
        topic.set_last_id((1, 0))
    house.end()
    house.next = 2
    house.append(50, 300)
    house.end()
    assert_alike(house, random.Random(0))
    assert sealing.unfinished(house.cold.settle(), house.cold) is None
    house.end()


def test_who_waits_for_what_cannot_be_had_is_told_at_once_and_the_rest_is_not_fetched_for_nobody(house: House) -> None:
    house.append(200, 300)
    house.seal(20_000)
    elsewhere = Elsewhere()
    shelf = house.keyspace.cold.shelf = Shelf(house.place.load, elsewhere, lambda: 1 << 20)
    shelf.may_miss = True
    called: list[int] = []
    with pytest.raises(ColdMiss) as miss:
        content(house.cold)
    assert len(miss.value.wanted) > 2
    wanted = [(block.path, number) for block, number in miss.value.wanted]
    lost = house.place.groups.pop(wanted[0])
    unpin = shelf.fetch(miss.value, lambda: called.append(1))
    elsewhere.waiting, later = elsewhere.waiting[:1], elsewhere.waiting[1:]
    elsewhere.work_off()
    assert called == [1]
    with pytest.raises(ColdUnreadable, match="block-1"):
        content(house.cold)
    unpin()
    house.place.groups[wanted[0]] = lost
    elsewhere.waiting = later
    elsewhere.work_off()
    assert (shelf.fetched, shelf.failures) == (0, 1)
    house.end()
