"""TOPIC.CONSUME: entries of a group are pushed as far as the credit goes, and no further."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.groups.group import group_of
from rlite_pubsub.groups.pending import acknowledge
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.topic import Topic
from rlite_pubsub.storage.errors import StoreFull
from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.turn import Turn


class Group:
    """A group `g` of the topic `t`, a session that consumes and one that does all else."""

    def __init__(self) -> None:
        self.house = House()
        self.consumer = self.house.session()
        self.other = self.house.session()
        assert self.do("xgroup create t g $ mkstream") == b"+OK\r\n"

    def do(self, words: str) -> bytes:
        return self.other.do(*words.split())

    def add(self, *numbers: int) -> None:
        for number in numbers:
            self.do(f"xadd t {number}-0 a 1")

    def consume(self, credit: int, session: RecordedSession | None = None, name: str = "c") -> bytes:
        return (session or self.consumer).do("topic.consume", "t", "g", name, "credit", str(credit))

    def heard(self, session: RecordedSession | None = None) -> bytes:
        """A turn in which nothing else happens."""
        return (session or self.consumer).heard()

    def pending(self) -> int:
        return int(self.do("xpending t g").split(b"\r\n")[1][1:])


def pushed(*numbers: int, name: bytes = b"c", kind: bytes = b"*") -> bytes:
    entries = b"".join([b"*2\r\n$%d\r\n%d-0\r\n*2\r\n$1\r\na\r\n$1\r\n1\r\n" % (len(b"%d-0" % n), n) for n in numbers])
    head = b"%b5\r\n$13\r\ntopic-entries\r\n$1\r\nt\r\n$1\r\ng\r\n$%d\r\n%b\r\n" % (kind, len(name), name)
    return head + b"*%d\r\n%b" % (len(numbers), entries)


ENDED = b"*4\r\n$15\r\ntopic-unconsume\r\n$1\r\nt\r\n$1\r\ng\r\n$1\r\nc\r\n"


@pytest.fixture
def group() -> Iterator[Group]:
    yield Group()


def test_what_is_there_comes_behind_the_reply_and_only_as_much_as_there_is_credit_for(group: Group) -> None:
    group.add(1, 2, 3)
    assert group.consume(2) == b"+OK\r\n" + pushed(1, 2)
    group.add(4)
    assert group.heard() == b""
    assert group.pending() == 2


def test_in_resp3_entries_are_push_messages(group: Group) -> None:
    group.consumer.do("hello", "3")
    group.add(1)
    assert group.consume(2) == b"+OK\r\n" + pushed(1, kind=b">")


@pytest.mark.parametrize("request_", ["xack t g 1-0", "xclaim t g other 0 1-0", "xgroup delconsumer t g c"])
def test_whatever_takes_an_entry_from_the_consumer_gives_its_credit_back_in_the_same_turn(
    group: Group, request_: str
) -> None:
    group.add(1, 2)
    group.consume(1)
    group.do(request_)
    assert group.heard() == pushed(2)


def test_an_entry_that_is_requeued_comes_again(group: Group) -> None:
    group.add(1, 2)
    assert group.consume(1) == b"+OK\r\n" + pushed(1)
    group.do("topic.requeue t g 1-0")
    assert group.heard() == pushed(1)


def test_what_the_consumer_reads_itself_takes_credit(group: Group) -> None:
    group.add(1, 2, 3)
    group.do("xreadgroup group g c count 1 streams t >")
    assert group.consume(2) == b"+OK\r\n" + pushed(2)
    group.do("xack t g 1-0")
    assert group.heard() == pushed(3)


def test_credit_0_pauses_and_another_credit_takes_its_place(group: Group) -> None:
    group.consume(5)
    assert group.consume(0) == b"+OK\r\n"
    group.add(1, 2)
    assert group.heard() == b""
    assert group.consume(1) == b"+OK\r\n" + pushed(1)
    assert group.consume(2) == b"+OK\r\n" + pushed(2)


def test_a_paused_consumer_costs_a_turn_nothing(group: Group) -> None:
    group.add(1, 2)
    group.consume(1)
    group.consume(0)
    group.heard()
    assert not group.house.engine.consuming.is_aside


def test_unconsume_ends_it_and_leaves_what_is_pending(group: Group) -> None:
    group.add(1)
    group.consume(5)
    assert group.consumer.do("topic.unconsume", "t", "g", "c") == b":1\r\n"
    assert group.consumer.do("topic.unconsume", "t", "g", "c") == b":0\r\n"
    group.add(2)
    assert (group.heard(), group.pending()) == (b"", 1)
    group.consume(5)
    group.consume(5, name="d")
    assert group.consumer.do("topic.unconsume") == b":2\r\n"


@pytest.mark.parametrize("end", ["reset", "close"])
def test_a_session_that_ends_leaves_the_line_to_others(group: Group, end: str) -> None:
    second = group.house.session()
    group.consume(5)
    group.consume(5, second, "d")
    if end == "reset":
        group.consumer.do("reset")
    else:
        group.consumer.close_now()
    group.add(1)
    assert (group.heard(), group.heard(second)) == (b"", pushed(1, name=b"d"))


def test_consumers_and_blocked_readers_take_turns(group: Group) -> None:
    reader = group.house.session()
    group.consume(5)
    reader.do(*"xreadgroup group g r block 0 streams t >".split())
    group.add(1)
    group.add(2)
    assert group.heard() == pushed(1)
    assert b"2-0" in group.heard(reader)


@pytest.mark.parametrize("why", ["no credit", "stalled"])
def test_who_can_be_given_nothing_keeps_nobody_behind_it_waiting(group: Group, why: str) -> None:
    reader = group.house.session()
    group.consume(1)
    if why == "stalled":
        group.consumer.gone = True  # takes no more
    else:
        group.add(1)
    group.consume(1)
    reader.do(*"xreadgroup group g r block 0 streams t >".split())
    group.add(2)
    assert b"2-0" in group.heard(reader)


def test_whose_credit_a_claim_has_used_keeps_nobody_behind_it_waiting(group: Group) -> None:
    reader = group.house.session()
    group.add(1)
    group.do("xreadgroup group g elsewhere streams t >")
    group.consume(1)
    group.do("xclaim t g c 0 1-0")
    reader.do(*"xreadgroup group g r block 0 streams t >".split())
    group.add(2)
    assert b"2-0" in group.heard(reader)


def test_an_acknowledgement_by_another_process_is_noticed_now_and_then(group: Group) -> None:
    group.add(1, 2)
    group.consume(1)
    assert group.heard() == b""
    elsewhere = Keyspace(group.house.data, lambda: 1)
    topic = elsewhere.for_change(0, b"t")
    assert isinstance(topic, Topic)
    there = group_of(topic, b"g")
    assert there is not None
    assert acknowledge(there, entry_ids.pack((1, 0))) == 1
    assert elsewhere.end_turn() is None
    assert group.heard() == b""
    group.house.engine.cron(group.house.clock.now)
    assert group.heard() == pushed(2)


def test_a_session_that_takes_no_more_is_given_nothing_until_it_has_drained(group: Group) -> None:
    group.consumer.gone = True
    group.add(1)
    assert (group.consume(5), group.pending()) == (b"+OK\r\n", 0)
    group.consumer.gone = False
    group.house.engine.consuming.drained(group.consumer)
    assert group.heard() == pushed(1)


def test_a_large_backlog_comes_in_pieces_and_all_of_it(group: Group) -> None:
    group.add(*range(1, 101))
    heard = group.consume(1000)
    assert heard == b"+OK\r\n" + pushed(*range(1, 33))
    assert group.heard() + group.heard() + group.heard() == (
        pushed(*range(33, 65)) + pushed(*range(65, 97)) + pushed(*range(97, 101))
    )


@pytest.mark.parametrize("request_", ["del t", "xgroup destroy t g", "flushall", "set t x"])
def test_a_session_is_told_when_its_group_is_gone(group: Group, request_: str) -> None:
    group.consume(5)
    group.do(request_)
    assert group.heard() == ENDED
    assert group.consumer.do("topic.unconsume") == b":0\r\n"


def test_a_session_out_of_credit_is_told_when_its_group_is_gone(group: Group) -> None:
    group.add(1, 2)
    group.consume(1)
    group.do("del t")
    assert group.heard() + group.heard() == ENDED


def test_what_could_not_be_committed_is_not_pushed_but_comes_later(
    group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    group.add(1)
    data = group.house.data
    end = data.end
    refused = []

    def refuse(turn: Turn, *, commit: bool) -> None:
        end(turn, commit=False)
        if commit:
            refused.append(1)
            raise StoreFull(data.path, 1)

    with monkeypatch.context() as broken:
        broken.setattr(data, "end", refuse)
        assert group.consume(5) == b"+OK\r\n"
        assert [group.heard() for _ in range(5)] == [b""] * 5
        assert len(refused) == 1  # it is not tried in each turn: what others do there would fail with it
    assert group.pending() == 0
    group.house.clock.now += 2
    group.house.engine.consuming.cron()
    assert group.heard() == pushed(1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("topic.consume t g c credit x", b"-ERR value is not an integer"),
        ("topic.consume t g c credit -1", b"-ERR value is not an integer"),
        ("topic.consume t g c count 1", b"-ERR syntax error"),
        ("topic.consume t none c credit 1", b"-NOGROUP"),
        ("topic.consume none g c credit 1", b"-NOGROUP"),
        ("topic.consume text g c credit 1", b"-WRONGTYPE"),
        ("topic.unconsume t g", b"-ERR wrong number of arguments for 'topic.unconsume'"),
    ],
)
def test_what_is_wrong_is_refused(group: Group, words: str, error: bytes) -> None:
    group.do("set text x")
    assert group.do(words).startswith(error)


def test_a_consumer_stays_with_its_database(group: Group) -> None:
    group.consume(5)
    group.consumer.do("select", "3")
    group.add(1)
    assert group.heard() == pushed(1)
