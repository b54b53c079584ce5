"""What goes from process to process is what was published, whatever it looks like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mailbox_sizes import backlog_of

from rlite_pubsub.durable.mailbox import DurablePost
from rlite_pubsub.pubsub import post as post_module
from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.membership import Membership
from rlite_pubsub.pubsub.post import AWAKE_NS, KEPT_LETTERS, RING_AGAIN_NS, Post, tails_of
from rlite_pubsub.pubsub.route import Address
from rlite_pubsub.pubsub.subscriber import Subscriber
from rlite_pubsub.storage.errors import StoreUnwritable
from rlite_pubsub.storage.mail import letters, mailboxes
from rlite_pubsub.storage.store import Store


@pytest.mark.parametrize(
    "payloads",
    [
        [b"one"],
        [b"x" * 20, b"y" * 20, b"z" * 20],
        [b"x" * 20, b"y" * 20, b"z" * 20, b"shorter"],
        [b"x" * 20, b"y" * 20, b"z" * 20, b"longer" * 10, b""],
        [b"ends\r\n$", b"x"],
        [b"has a header\r\n$3\r\nabc", b"x"],
        [b"\r\n$1\r\nx\r\n"] * 3,
        [b"x" * 600, b"\r\n$600\r\n", b"x" * 600],
    ],
)
def test_a_run_is_read_as_it_was_packed(payloads: list[bytes]) -> None:
    tails = [b"%d\r\n%b" % (len(payload), payload) for payload in payloads]
    run = letters.unpack(letters.pack(0, b"news", tails))
    assert letters.tails(run) == tails
    assert tails_of(run) == tails


def test_a_run_of_one_is_packed_as_any_run_is() -> None:
    payload = b"has a header\r\n$3\r\nabc"
    assert letters.pack_one(2, b"news", payload) == letters.pack(2, b"news", [b"%d\r\n%b" % (len(payload), payload)])


def test_message_on_a_route_that_is_out_of_date_goes_to_those_who_are_there_at_the_commit(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store")
    publisher = Membership(store, DurablePost(store), lambda: None)
    gone, there = Subscriber.join(store, "embedded"), Subscriber.join(store, "embedded")
    gone.record({(CHANNELS.database, b"news"): 1})
    publisher.neighbours.refresh()
    address = Address(CHANNELS, b"news", (gone.id,))
    gone.leave()
    there.record({(CHANNELS.database, b"news"): 1})
    publisher.post.send_one(address, b"hello")
    with_letters = store.live.read(mailboxes.owners)
    runs, has_more = publisher.post.receive(there.id)
    assert (with_letters, [tails_of(run) for run in runs], has_more) == ([there.id], [[b"5\r\nhello"]], False)
    there.leave()
    publisher.leave()
    store.close()


class Clock:
    """Nanoseconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now_ns = 1 << 40

    def __call__(self) -> int:
        return self.now_ns


class Pair(NamedTuple):
    """Who publishes, and who reads."""

    store: Store
    publisher: Post
    address: Address
    reader: Subscriber
    post: Post
    clock: Clock

    def publish(self) -> bool:
        """Whether the reader was rung."""
        rung = self.publisher.rung
        self.publisher.send_one(self.address, b"hello")
        return self.publisher.rung > rung

    def look(self) -> int:
        """As whoever was rung does; how many messages have come."""
        self.reader.bell.clear()
        runs, has_more = self.post.receive(self.reader.id)
        assert not has_more
        return sum(run.messages for run in runs)

    @property
    def left(self) -> int:
        """Messages in the reader's mailbox."""
        return self.store.live.read(lambda txn: backlog_of(txn, self.reader.id)).messages

    @property
    def looks_again(self) -> bool:
        return self.reader.bell.wait(0)


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pair]:
    clock = Clock()
    monkeypatch.setattr(post_module, "monotonic_ns", clock)
    store = Store.open(tmp_path / "store")
    publisher, receiving = (Membership(store, DurablePost(store), lambda: None) for _ in range(2))
    reader = Subscriber.join(store, "embedded")
    reader.record({(CHANNELS.database, b"news"): 1})
    publisher.neighbours.refresh()
    yield Pair(store, publisher.post, Address(CHANNELS, b"news", (reader.id,)), reader, receiving.post, clock)
    reader.leave()
    publisher.leave()
    receiving.leave()
    store.close()


def test_a_reader_of_single_messages_sleeps_at_once_and_is_rung_for_each(pair: Pair) -> None:
    for _ in range(3):
        assert pair.publish()
        assert (pair.look(), pair.left, pair.looks_again) == (1, 0, False)
        pair.clock.now_ns += AWAKE_NS


def stay_awake(pair: Pair) -> None:
    """Two messages that are not far from each other."""
    for _ in range(2):
        pair.publish()
        assert pair.look() == 1
        pair.clock.now_ns += AWAKE_NS // 2
    assert (pair.left, pair.looks_again) == (1, True)


def test_a_reader_of_a_stream_looks_again_by_itself_and_is_not_rung(pair: Pair) -> None:
    stay_awake(pair)
    for number in range(10):
        assert not pair.publish()
        assert (pair.look(), pair.left, pair.looks_again) == (1, 2 + number, True)
        pair.clock.now_ns += AWAKE_NS // 20


def test_a_reader_whose_stream_has_ended_lies_down_with_an_empty_mailbox(pair: Pair) -> None:
    stay_awake(pair)
    assert (pair.look(), pair.left, pair.looks_again) == (0, 1, True)
    pair.clock.now_ns += AWAKE_NS
    assert (pair.look(), pair.left, pair.looks_again) == (0, 0, False)
    assert pair.publish()


def test_a_message_that_comes_while_its_reader_lies_down_is_seen(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    stay_awake(pair)
    assert pair.look() == 0
    pair.clock.now_ns += AWAKE_NS
    write = pair.store.live.write

    def write_behind_a_publish(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(pair.store.live, "write", write)
        assert not pair.publish()
        return write(*arguments, **options)

    monkeypatch.setattr(pair.store.live, "write", write_behind_a_publish)
    assert pair.post.receive(pair.reader.id) == ([], True)
    assert pair.look() == 1


def test_what_was_taken_is_handed_on_though_a_full_disk_keeps_it_in_the_mailbox(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise StoreUnwritable(pair.store.live.path, "No space left on device")

    pair.publish()
    with monkeypatch.context() as full:
        full.setattr(pair.store.live, "write", refuse)
        assert (pair.look(), pair.left) == (1, 1)
        assert pair.look() == 0
    pair.clock.now_ns += AWAKE_NS
    pair.publish()
    assert (pair.look(), pair.left) == (1, 0)


def test_a_reader_that_stays_awake_does_not_keep_more_than_it_may(pair: Pair) -> None:
    stay_awake(pair)
    left = []
    for _ in range(2 * KEPT_LETTERS):
        pair.publish()
        assert pair.look() == 1
        left.append(pair.left)
    assert max(left) == KEPT_LETTERS
    assert left.count(0) >= 1


def test_a_reader_that_stops_while_it_is_awake_is_rung_now_and_then(pair: Pair) -> None:
    stay_awake(pair)
    rung = 0
    for _ in range(100):
        pair.clock.now_ns += RING_AGAIN_NS // 10
        rung += pair.publish()
    assert 8 <= rung <= 10


def test_what_was_kept_is_not_taken_twice(pair: Pair) -> None:
    stay_awake(pair)
    for _ in range(5):
        pair.publish()
    assert pair.look() == 5
    pair.clock.now_ns += AWAKE_NS
    assert pair.look() == 0
    pair.clock.now_ns += AWAKE_NS
    assert (pair.look(), pair.left, pair.post.received) == (0, 0, 7)
