"""TOPIC.SUBSCRIBE: where each start begins, and what the confirmation says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from recorded_session import House, RecordedSession

from rlite_pubsub.keyspace.topic.append import encode_entry
from rlite_pubsub.keyspace.topic.topic import Topic


class Reader:
    """A session, and a topic that is written to beside it."""

    def __init__(self) -> None:
        self.house = House()
        self.session = self.house.session()

    def add(self, *ids: tuple[int, int]) -> None:
        keyspace = self.house.engine.keyspace
        assert keyspace is not None
        topic = keyspace.for_change(0, b"orders") or keyspace.create_topic(0, b"orders")
        assert isinstance(topic, Topic)
        for entry_id in ids:
            topic.append(entry_id, encode_entry(entry_id, [b"n", b"%d" % entry_id[0]]))
        self.house.engine.commit()

    def trim(self, count: int) -> None:
        keyspace = self.house.engine.keyspace
        assert keyspace is not None
        topic = keyspace.for_change(0, b"orders")
        assert isinstance(topic, Topic)
        topic.trim(count)
        self.house.engine.commit()

    def do(self, *words: bytes | str) -> bytes:
        return self.session.do(*words)

    def heard(self) -> bytes:
        self.house.engine.commit()
        return self.session.heard()


@pytest.fixture
def reader() -> Iterator[Reader]:
    yield Reader()


def confirmed(start: bytes, count: int = 1, lost: int = 0) -> bytes:
    head = b"*5\r\n$15\r\ntopic-subscribe\r\n$6\r\norders\r\n"
    return head + b"$%d\r\n%b\r\n:%d\r\n:%d\r\n" % (len(start), start, count, lost)


def message(entry_id: bytes, value: bytes) -> bytes:
    return b"*4\r\n$13\r\ntopic-message\r\n$6\r\norders\r\n$%d\r\n%b\r\n*2\r\n$1\r\nn\r\n$%d\r\n%b\r\n" % (
        len(entry_id),
        entry_id,
        len(value),
        value,
    )


@pytest.mark.parametrize(
    ("start", "resumed", "ids"),
    [
        ("-", b"0-0", [b"1-0", b"5-0", b"5-1", b"9-0"]),
        ("0", b"0-0", [b"1-0", b"5-0", b"5-1", b"9-0"]),
        ("1-0", b"1-0", [b"5-0", b"5-1", b"9-0"]),
        ("5-0", b"5-0", [b"5-1", b"9-0"]),
        ("5", b"4-18446744073709551615", [b"5-0", b"5-1", b"9-0"]),
        ("6", b"5-18446744073709551615", [b"9-0"]),
        ("+", b"8-18446744073709551615", [b"9-0"]),
        ("$", b"9-0", []),
        ("9-0", b"9-0", []),
    ],
)
def test_a_start_is_an_id_a_time_or_a_sign(reader: Reader, start: str, resumed: bytes, ids: list[bytes]) -> None:
    reader.add((1, 0), (5, 0), (5, 1), (9, 0))
    said = reader.do("topic.subscribe", "orders", start) + reader.heard()
    assert said == confirmed(resumed) + b"".join([message(one, one.partition(b"-")[0]) for one in ids])
    reader.add((10, 0))
    assert reader.heard() == message(b"10-0", b"10")


def test_a_start_that_retention_has_passed_is_answered_with_the_earliest_and_the_number_lost(reader: Reader) -> None:
    reader.add(*[(number, 0) for number in range(1, 11)])
    reader.trim(7)
    said = reader.do("topic.subscribe", "orders", "-") + reader.heard()
    assert said.startswith(confirmed(b"8-0", lost=7) + message(b"8-0", b"8"))


def test_lost_entries_are_counted_to_within_a_thousand_from_any_id(reader: Reader) -> None:
    reader.add(*[(number, 0) for number in range(1, 10_001)])
    for _ in range(9):
        reader.trim(1000)
    said = reader.do("topic.subscribe", "orders", "6500-0")
    assert said.startswith(confirmed(b"9001-0", lost=3000)) or said.startswith(confirmed(b"9001-0", lost=2500))


def test_several_topics_are_followed_at_once_and_left_one_by_one(reader: Reader) -> None:
    reader.add((1, 0))
    said = reader.do("topic.subscribe", "orders", "$", "other", "-")
    assert said == confirmed(b"1-0") + (
        b"*5\r\n$15\r\ntopic-subscribe\r\n$5\r\nother\r\n$3\r\n0-0\r\n:2\r\n:0\r\n"
    )
    assert reader.do("topic.unsubscribe", "orders") == b"*3\r\n$17\r\ntopic-unsubscribe\r\n$6\r\norders\r\n:1\r\n"
    reader.add((2, 0))
    assert reader.heard() == b""
    assert reader.do("topic.unsubscribe") == b"*3\r\n$17\r\ntopic-unsubscribe\r\n$5\r\nother\r\n:0\r\n"
    assert reader.do("topic.unsubscribe") == b"*3\r\n$17\r\ntopic-unsubscribe\r\n$-1\r\n:0\r\n"


def test_in_resp2_a_following_session_may_do_only_what_a_subscribed_one_may(reader: Reader) -> None:
    reader.do("topic.subscribe", "orders", "$")
    assert reader.do("get", "a").startswith(b"-ERR Can't execute 'get'")
    assert reader.do("reset") == b"+RESET\r\n"
    assert reader.do("dbsize") == b":0\r\n"
    reader.add((2, 0))
    assert reader.heard() == b""


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["orders"], b"-ERR wrong number of arguments for 'topic.subscribe' command\r\n"),
        (["orders", "-", "other"], b"-ERR syntax error\r\n"),
        (["orders", "x"], b"-ERR value is not an integer or out of range\r\n"),
        (["orders", "1-x"], b"-ERR Invalid stream ID specified as stream command argument\r\n"),
    ],
)
def test_a_bad_start_is_refused_and_nothing_is_followed(reader: Reader, words: list[str], error: bytes) -> None:
    assert reader.do("topic.subscribe", *words) == error
    assert not reader.session.follows


def test_a_string_is_no_topic(reader: Reader) -> None:
    keyspace = reader.house.engine.keyspace
    assert keyspace is not None
    keyspace.put_string(0, b"orders", b"x")
    reader.house.engine.commit()
    assert reader.do("topic.subscribe", "orders", "-").startswith(b"-WRONGTYPE")


def test_a_closed_session_is_followed_by_nobody(reader: Reader) -> None:
    session: RecordedSession = reader.session
    reader.do("topic.subscribe", "orders", "-")
    session.close_now()
    reader.add((1, 0))
    assert not session.follows and session.heard() == b""
