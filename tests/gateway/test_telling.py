"""What streams of channels say: the same for all who are handed the same bytes, and worked out once."""

from __future__ import annotations

import json

import pytest
from event_source import Event, events, lines_of
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.gateway.streams import channel_streams
from rlite_pubsub.gateway.streams.channel_streams import ToldMessages
from rlite_pubsub.protocol.encoder import encode
from rlite_pubsub.protocol.replies import Push


def said(data: bytes) -> list[Event]:
    return list(events(lines_of(data.decode())))


def message(payload: bytes, channel: bytes = b"news") -> bytes:
    return encode(Push([b"message", channel, payload]), 2)


@given(st.lists(st.text(max_size=50), max_size=5))
def test_every_message_is_an_event_in_order_and_nothing_else_is(payloads: list[str]) -> None:
    part = b"".join([message(payload.encode()) for payload in payloads])
    confirmation = encode(Push([b"subscribe", b"news", 1]), 2)
    found = said(ToldMessages().events(confirmation + part, is_binary=False))
    lines = [payload.replace("\r\n", "\n").replace("\r", "\n") for payload in payloads]
    assert [event.data for event in found] == lines
    assert {event.type for event in found} <= {"message"}


def test_message_of_a_pattern_says_which_and_a_loss_how_much() -> None:
    part = encode(Push([b"pmessage", b"n*", b"news", b"x"]), 2) + encode(Push([b"gap", b"news", 3, 17]), 2)
    matched, gap = said(ToldMessages().events(part, is_binary=False))
    assert json.loads(matched.data) == {"pattern": "n*", "channel": "news", "data": "x"}
    assert gap.type == "gap"
    assert json.loads(gap.data) == {"reason": "slow", "channel": "news", "lost": 3, "since_ms": 17}


def test_same_bytes_are_worked_out_once_for_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    worked_out: list[bytes] = []
    tell = channel_streams._told

    def counted(frame: bytes, is_binary: bool) -> bytes:
        worked_out.append(frame)
        return tell(frame, is_binary)

    monkeypatch.setattr(channel_streams, "_told", counted)
    told = ToldMessages()
    part = message(b"x")
    for _ in range(100):
        assert [event.data for event in said(told.events(part, is_binary=False))] == ["x"]
        assert [event.data for event in said(told.events(part, is_binary=True))] == ["eA=="]
    assert len(worked_out) == 2


def test_what_is_remembered_is_bounded() -> None:
    told = ToldMessages()
    for number in range(100):
        told.events(message(b"%d" % number * 20_000), is_binary=False)
        assert sum(len(part) + len(text) for (part, _), text in told._told.items()) <= channel_streams.KEPT_BYTES
    huge = message(b"x" * channel_streams.KEPT_BYTES)
    assert said(told.events(huge, is_binary=False))[0].data == "x" * channel_streams.KEPT_BYTES
    assert not any(part is huge for part, _ in told._told)
