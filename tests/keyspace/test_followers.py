"""Followers of a topic: everything once, in order, from wherever they begin, however slow they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hiredis
import pytest
from engines import open_data

from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.followers import READ_BYTES, Followers, Key
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.entry_ids import Id

KEY: Key = (0, b"orders")


class Reader(Session):
    """Reads as much as it is let."""

    def __init__(self, hub: Hub, protocol: int = 2) -> None:
        super().__init__(1, hub)
        self.protocol = protocol
        self.is_slow = False

    @property
    def takes_more(self) -> bool:
        return not self.is_slow

    def heard(self) -> list[list[Any]]:
        """What was said since the last time, frame by frame."""
        replies = hiredis.Reader()
        replies.feed(b"".join(self.said).replace(b">4\r\n", b"*4\r\n"))
        self.said.clear()
        return list(iter(replies.gets, False))

    def ids(self) -> list[bytes]:
        """The ids of the entries that were said."""
        return [frame[2] for frame in self.heard() if frame[0] == b"topic-message"]


class Log:
    """A topic, who follows it, and turns."""

    def __init__(self, path: Path) -> None:
        self.environment = open_data(path, 1 << 30, 1 << 30)
        self.keyspace = Keyspace(self.environment, lambda: 1000)
        self.hub = Hub(lambda counts: None)
        self.followed: set[Key] = set()
        self.turns_wanted = 0
        self.followers = Followers(self.followed.add, self.followed.remove, self._again)
        self.last = 0

    def _again(self) -> None:
        self.turns_wanted += 1

    def reader(self, after: Id = entry_ids.MIN, protocol: int = 2) -> Reader:
        reader = Reader(self.hub, protocol)
        topic = self.keyspace.find(*KEY)
        self.followers.follow(reader, KEY, after, topic if isinstance(topic, Topic) else None)
        self.turn()
        return reader

    def add(self, count: int, value: bytes = b"v") -> None:
        topic = self.keyspace.for_change(*KEY)
        if topic is None:
            topic = self.keyspace.create_topic(*KEY)
        assert isinstance(topic, Topic)
        for _ in range(count):
            self.last += 1
            topic.append((self.last, 0), encode_entry((self.last, 0), [b"f", value]))

    def trim(self, count: int) -> None:
        topic = self.keyspace.for_change(*KEY)
        assert isinstance(topic, Topic)
        topic.trim(count)
        topic.signal()

    def turn(self) -> None:
        """The turn's end."""
        for key in self.keyspace.ready:
            assert key[1] is not None
            self.followers.note((key[0], key[1]))
        self.keyspace.ready.clear()
        assert self.keyspace.end_turn() is None
        self.followers.pump(self.keyspace)
        self.keyspace.end_turn()

    def turns(self) -> None:
        """All that is wanted."""
        self.turn()
        while self.followers.is_due:
            self.turn()


def names(start: int, stop: int) -> list[bytes]:
    return [b"%d-0" % number for number in range(start, stop)]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = Log(tmp_path / "data.mdb")
    yield log
    log.environment.close()


def test_replay_goes_live_without_a_gap_or_a_duplicate_while_entries_come(log: Log) -> None:
    log.add(20_000, b"x" * 100)
    log.turn()
    reader = log.reader()
    luck = random.Random(1)
    ids: list[bytes] = []
    while log.followers.is_due or log.last < 25_000:
        log.add(luck.randrange(200))
        log.turn()
        ids += reader.ids()
    assert ids == names(1, log.last + 1)


def test_no_more_than_a_readable_amount_is_said_in_one_turn(log: Log) -> None:
    log.add(20_000, b"x" * 100)
    log.turn()
    reader = log.reader()
    assert 0 < sum(map(len, reader.said)) < 2 * READ_BYTES
    assert log.turns_wanted == 1


def test_a_start_is_the_last_id_that_was_seen(log: Log) -> None:
    log.add(10)
    log.turn()
    assert log.reader((7, 0)).ids() == names(8, 11)
    assert log.reader((10, 0)).ids() == []


def test_a_slow_reader_goes_on_from_its_offset_and_others_are_not_kept_waiting(log: Log) -> None:
    slow, quick = log.reader(), log.reader()
    log.add(5)
    log.turn()
    slow.is_slow = True
    log.add(50_000)
    log.turns()
    assert quick.ids() == names(1, 50_006)
    assert slow.ids() == names(1, 6)
    slow.is_slow = False
    log.followers.drained(slow)
    log.turns()
    assert slow.ids() == names(6, 50_006)


def test_a_reader_that_retention_has_passed_is_told_how_many_it_has_lost(log: Log) -> None:
    reader = log.reader()
    log.add(100)
    log.turns()
    reader.heard()
    reader.is_slow = True
    log.add(1000)
    log.turn()
    log.trim(600)
    log.turn()
    reader.is_slow = False
    log.followers.drained(reader)
    log.turns()
    frames = reader.heard()
    assert frames[0] == [b"topic-gap", b"orders", b"601-0", 500]
    assert [frame[2] for frame in frames[1:]] == names(601, 1101)
    assert log.followers.lost == 500


def test_trimming_what_a_reader_has_had_is_no_loss(log: Log) -> None:
    reader = log.reader()
    log.add(100)
    log.turns()
    log.trim(100)
    log.turns()
    log.add(1)
    log.turns()
    assert [frame[0] for frame in reader.heard()] == [b"topic-message"] * 101


def test_a_deleted_entry_in_between_is_passed_over(log: Log) -> None:
    log.add(5)
    log.turn()
    topic = log.keyspace.for_change(*KEY)
    assert isinstance(topic, Topic)
    topic.delete([(3, 0), (5, 0)])
    log.turn()
    reader = log.reader()
    assert reader.ids() == [b"1-0", b"2-0", b"4-0"]
    log.add(1)
    log.turn()
    assert reader.ids() == [b"6-0"]


def test_a_topic_that_is_deleted_and_made_again_is_followed_from_its_beginning(log: Log) -> None:
    reader = log.reader()
    log.add(10)
    log.turns()
    assert reader.ids() == names(1, 11)
    log.keyspace.delete(*KEY)
    log.turns()
    log.last = 0
    log.add(3)
    log.turns()
    assert reader.ids() == names(1, 4)


def test_a_topic_can_be_followed_before_it_exists(log: Log) -> None:
    reader = log.reader()
    log.add(2)
    log.turns()
    assert reader.ids() == names(1, 3)


def test_resp3_is_told_by_pushes(log: Log) -> None:
    reader = log.reader(protocol=3)
    log.add(1)
    log.turns()
    expected = b">4\r\n$13\r\ntopic-message\r\n$6\r\norders\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    assert b"".join(reader.said) == expected


def test_who_has_left_hears_nothing_and_nobody_watches_then(log: Log) -> None:
    reader = log.reader()
    assert log.followed == {KEY}
    assert log.followers.leave(reader, KEY)
    assert not log.followers.leave(reader, KEY)
    assert log.followed == set()
    log.add(1)
    log.turns()
    assert reader.heard() == []
    assert not reader.holds_names


def test_listener_is_told_with_and_without_followers_and_only_while_it_listens() -> None:
    begun: list[Key] = []
    ended: list[Key] = []
    followers = Followers(begun.append, ended.append, lambda: None)
    reader = Reader(Hub(lambda counts: None))
    told: list[None] = []

    def listener() -> None:
        told.append(None)

    class Nothing:
        def find(self, database: int, name: bytes) -> None:
            return None

    def change() -> int:
        followers.note(KEY)
        followers.pump(Nothing())  # type: ignore[arg-type]
        return len(told)

    assert change() == 0
    followers.listen(KEY, listener)
    assert change() == 1
    followers.follow(reader, KEY, entry_ids.MIN, None)
    assert change() == 2
    followers.leave(reader, KEY)
    assert change() == 3 and begun == [KEY] and not ended
    followers.follow(reader, KEY, entry_ids.MIN, None)
    followers.unlisten(KEY, listener)
    assert change() == 3 and not ended
    followers.leave(reader, KEY)
    assert ended == [KEY]
