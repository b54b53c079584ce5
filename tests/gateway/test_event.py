from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlite_pubsub.gateway.events import event
from rlite_pubsub.keyspace.topic.append import encode_entry


@given(st.binary(max_size=40), st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_an_event_comes_out_of_its_entry_as_it_went_in(type: bytes, body: str) -> None:
    assert event.decode(event.encode((1, 2), type, body.encode())) == (type, body.encode())


@given(st.lists(st.tuples(st.binary(max_size=9) | st.sampled_from([b"type", b"body"]), st.binary(max_size=40)),
                min_size=1, max_size=4))  # fmt: skip
def test_whatever_a_redis_client_appends_is_an_event_in_utf_8(fields: list[tuple[bytes, bytes]]) -> None:
    words = [word for field in fields for word in field]
    type, body = event.decode(encode_entry((1, 2), words))
    body.decode()
    said = dict(fields)
    assert type == said.get(b"type", b"")
    if b"body" not in said:
        assert isinstance(json.loads(body), dict)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ([b"type", b"t", b"body", b"\xff"], (b"t", b'{"base64": "/w=="}')),
        ([b"body", b"x", b"type", b"t"], (b"t", b"x")),
        ([b"body", b"x"], (b"", b"x")),
        ([b"a", b"1", b"b", b"\xff"], (b"", b'{"a": "1", "b": {"base64": "/w=="}}')),
        ([b"type", b"t\r\n$4\r\nbody\r\n$1", b"body", b"x"], (b"t\r\n$4\r\nbody\r\n$1", b"x")),
    ],
)
def test_what_is_not_quite_an_event(fields: list[bytes], told: tuple[bytes, bytes]) -> None:
    assert event.decode(encode_entry((1, 2), fields)) == told
