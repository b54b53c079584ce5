"""Our output, cut into whole replies: whatever the encoder writes comes apart where it was put together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_encoder import GOLDEN, TREES

from rlite_pubsub.protocol.encoder import encode, error
from rlite_pubsub.protocol.frames import Frames, elements, frames
from rlite_pubsub.protocol.replies import Push, Replies


@settings(max_examples=400, deadline=None)
@given(st.lists(TREES | st.lists(TREES, min_size=1, max_size=4).map(Push), max_size=5), st.sampled_from([2, 3]))
def test_whatever_the_encoder_writes_is_cut_into_whole_replies(replies: list[Any], protocol: int) -> None:
    written = [encode(reply, protocol) for reply in replies]
    assert list(frames(b"".join(written))) == written
    assert list(frames(encode(Replies(replies), protocol))) == written


def test_every_golden_reply_is_one_frame() -> None:
    for protocol in (2, 3):
        written = [encode(row[1], protocol) for row in GOLDEN if row[0] not in ("no reply", "several replies")]
        assert list(frames(b"".join(written))) == written


@given(st.binary())
def test_an_error_is_one_frame(text: bytes) -> None:
    assert list(frames(error(text) * 2)) == [error(text)] * 2


def test_nothing_has_no_frames() -> None:
    assert list(frames(b"")) == []


def test_a_deep_reply_is_cut_without_recursion() -> None:
    deep = b"*1\r\n" * 100_000 + b":1\r\n"
    assert list(frames(deep + b"+OK\r\n")) == [deep, b"+OK\r\n"]


def test_a_reply_that_is_not_whole_is_our_fault() -> None:
    for data in (b"*2\r\n:1\r\n", b":1", b"*"):
        with pytest.raises(ValueError):
            list(frames(data))


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_first_elements_of_a_message_are_read(protocol: int) -> None:
    frame = encode(Push([b"pmessage", b"a*", b"\r\n$1\r\n", 7]), protocol)
    assert elements(frame, 4) == [b"pmessage", b"a*", b"\r\n$1\r\n", b"7"]
    assert elements(frame, 2) == [b"pmessage", b"a*"]
    assert elements(frame, 9) == [b"pmessage", b"a*", b"\r\n$1\r\n", b"7"]
    assert elements(encode(Push([b"unsubscribe", None, 0]), protocol), 3) == [b"unsubscribe"]
    assert elements(encode([], protocol), 3) == []


@given(st.lists(TREES, max_size=5), st.integers(1, 9))
def test_a_stream_is_cut_alike_however_it_comes(replies: list[Any], size: int) -> None:
    written = [encode(reply, 3) for reply in replies]
    data = b"".join(written)
    cutter = Frames()
    found: list[bytes] = []
    for at in range(0, len(data), size):
        found += cutter.feed(data[at : at + size])
    assert found == written


@pytest.mark.parametrize(
    ("head", "unit", "why"),
    [
        (b"$400000000000\r\n", b"x", "too large"),
        (b"$" + b"9" * 5000 + b"\r\n", b"", "too large"),
        (b"+", b"x" * 100, "too large"),
        (b"*999999\r\n", b"$1\r\na\r\n" * 100, "too large"),
        (b"", b"|1\r\n+a\r\n+b\r\n" * 100, "too large"),
        (b"", b"*1\r\n" * 100, "too deeply"),
        (b"$-7\r\n", b"", "less than nothing"),
    ],
)
def test_what_never_ends_is_refused(head: bytes, unit: bytes, why: str) -> None:
    cutter = Frames(most_bytes=5000)
    with pytest.raises(ValueError, match=why):
        cutter.feed(head)
        for _ in range(100):
            cutter.feed(unit)
