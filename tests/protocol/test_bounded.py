"""Replies from anybody: what is whole is read as hiredis reads it, what is too much is refused before it has come."""

from __future__ import annotations

from typing import Any

import hiredis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.protocol import bounded
from rlite_pubsub.protocol.bounded import NOTHING, BoundedReader, ReplyLimits, TooMuch, bounded_reader

LIMITS = ReplyLimits(cost=200_000, elements=1000)

TRICKY = st.sampled_from(
    [
        b"*99999999\r\n",
        b"\r\n*99999999\r\n",
        b"%4294967295",
        b"*",
        b"\n*1234567",
        b"$999999999999\r\n",
        b"$5\r\n",
        b"",
        b"\n~0000000099\r\nx",
    ]
)
TEXTS = st.one_of(TRICKY, st.binary(max_size=40), st.lists(TRICKY, max_size=4).map(b"".join))
REPLIES = st.recursive(
    st.one_of(
        TEXTS.map(lambda text: b"$%d\r\n%b\r\n" % (len(text), text)),
        st.integers(-(10**9), 10**9).map(lambda number: b":%d\r\n" % number),
        st.sampled_from([b"+OK\r\n", b"-ERR no\r\n", b"$-1\r\n", b"_\r\n", b"#t\r\n", b"(123456789012345\r\n"]),
    ),
    lambda inner: st.lists(inner, max_size=4).map(lambda all_: b"*%d\r\n" % len(all_) + b"".join(all_)),
    max_leaves=12,
)


def _all(reader: Any, nothing: object) -> list[str]:
    found = []
    while (reply := reader.gets()) is not nothing:
        found.append(repr(reply))
    return found


@given(st.lists(REPLIES, max_size=6), st.lists(st.integers(1, 9), min_size=1))
def test_whatever_is_within_the_limits_is_read_as_hiredis_reads_it(replies: list[bytes], cuts: list[int]) -> None:
    data = b"".join(replies)
    plain = hiredis.Reader(notEnoughData=NOTHING)
    plain.feed(data)
    reader = bounded_reader(LIMITS)
    found: list[str] = []
    at = turn = 0
    while at < len(data):
        size = cuts[turn % len(cuts)]
        reader.feed(data[at : at + size])
        at += size
        turn += 1
        found += _all(reader, NOTHING)
    assert found == _all(plain, NOTHING)
    assert not reader.has_data()


@given(st.binary(max_size=400), st.integers(1, 7))
def test_noise_ends_in_a_word_and_nothing_else(data: bytes, size: int) -> None:
    reader = bounded_reader(LIMITS)
    try:
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
            _all(reader, NOTHING)
    except (TooMuch, hiredis.HiredisError):
        pass


@pytest.mark.parametrize("head", [b"", b"+OK\r\n", b"*2\r\n", b"*1\r\n" * 50, b"$12\r\n\r\n*99999999\r\n"])
@pytest.mark.parametrize("kind", [b"*", b"%", b"~", b">", b"|", b"$", b"=", b"!"])
@pytest.mark.parametrize("count", [b"4294967295", b"400000000", b"9" * 30])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_count_beyond_the_limit_is_refused_before_anybody_makes_room_for_it(
    head: bytes, kind: bytes, count: bytes, size: int
) -> None:
    data = head + (b"\r\n" if head.startswith(b"$") else b"") + kind + count + b"\r\n"
    reader = bounded_reader(LIMITS)
    with pytest.raises((TooMuch, hiredis.HiredisError), match="announces|too large|Bad|type|bulk|count|length"):
        for at in range(0, len(data), size):
            reader.feed(data[at : at + size])
            _all(reader, NOTHING)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        (b"+", b"x" * 1000),
        (b"*999\r\n", b"$1000\r\n" + b"\n" * 1000 + b"\r\n"),
        (b"*999\r\n", b"$1000\r\n" + b"x" * 1000 + b"\r\n"),
        (b"*999\r\n", b"*999\r\n" + b"_\r\n" * 999),
    ],
    ids=["a line", "lines", "strings", "nulls"],
)
def test_an_endless_reply_is_refused_at_the_limit(head: bytes, unit: bytes) -> None:
    reader = bounded_reader(LIMITS)
    reader.feed(head)
    sent = 0
    with pytest.raises(TooMuch, match="too much memory"):
        while sent <= LIMITS.cost:
            reader.feed(unit)
            sent += len(unit)
            _all(reader, NOTHING)


def test_replies_one_behind_the_other_never_add_up() -> None:
    reader = bounded_reader(LIMITS)
    for _ in range(1000):
        reader.feed(b"$2000\r\n" + b"x" * 2000)
        reader.feed(b"\r\n+OK\r\n$1")
        reader.feed(b"\r\nx\r\n")
        assert len(_all(reader, NOTHING)) == 3


def test_a_reply_that_drips_is_refused_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(bounded, "monotonic", lambda: now[0])
    reader = bounded_reader(ReplyLimits(seconds=5))
    reader.feed(b"+O")
    now[0] += 4
    reader.feed(b"K\r\n")
    assert reader.gets() == b"OK"
    now[0] += 1000  # nobody has asked for anything
    reader.feed(b"+O")
    now[0] += 6
    with pytest.raises(TooMuch, match="more than 5 s"):
        reader.feed(b"K")


def test_the_one_who_uses_it_chooses_what_is_raised() -> None:
    reader = BoundedReader(hiredis.Reader(notEnoughData=NOTHING), LIMITS, NOTHING, OSError)
    with pytest.raises(OSError, match="announces 1234567 elements"):
        reader.feed(b"*1234567\r\n")
