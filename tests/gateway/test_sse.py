from __future__ import annotations

import json

from event_source import Event, events, lines_of
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.gateway.http import sse

LINES = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\r\n\0: "), max_size=60)
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), min_size=1, max_size=20)
HOSTILE = ["\n\ndata: x", "\r\rid: 1", "a\nevent: b", "\r\n\r\n", ":", "data", "\0", "\ufeff", "id: 5\n", "\n"]


def read(stream: bytes) -> list[Event]:
    return list(events(lines_of(stream.decode())))


def with_line_feeds(body: str) -> str:
    return body.replace("\r\n", "\n").replace("\r", "\n")


@given(st.lists(st.tuples(WORDS, WORDS, LINES | st.sampled_from(HOSTILE)), max_size=5))
def test_what_is_said_is_what_is_read_event_for_event(said: list[tuple[str, str, str]]) -> None:
    stream = b"".join(sse.event(type.encode(), id.encode(), body.encode()) for type, id, body in said)
    assert read(stream) == [Event(type, id, with_line_feeds(body)) for type, id, body in said]


@given(LINES | st.sampled_from(HOSTILE), LINES | st.sampled_from(HOSTILE), LINES)
def test_no_type_or_id_makes_a_field_or_an_event_of_its_own(type: str, id: str, body: str) -> None:
    stream = sse.event(type.encode(), id.encode(), body.encode()) + sse.event(b"next", b"1", b"")
    first, second = read(stream)
    assert first.data == with_line_feeds(body)
    assert second == Event("next", "1", "")
    fields = [line.partition(":")[0] for line in lines_of(stream.decode()) if line]
    assert fields.count("event") == 1 + bool(type) and fields.count("id") == 1 + bool(id)


def test_an_empty_body_is_an_event_all_the_same() -> None:
    assert read(sse.event(b"t", b"1", b"")) == [Event("t", "1", "")]


def test_heartbeats_retry_and_positions_are_no_events() -> None:
    assert read(sse.retry(1000) + sse.HEARTBEAT + sse.position(b"7") + sse.event(b"t", b"", b"x")) == [
        Event("t", "7", "x")
    ]


def test_a_gap_has_no_id_so_that_a_reader_keeps_its_own() -> None:
    (gap,) = events(lines_of(sse.gap({"reason": "expired"}).decode()), "its own")
    assert gap.type == "gap" and gap.id == "its own" and json.loads(gap.data) == {"reason": "expired"}
