"""TOPIC.EXPORT and TOPIC.MARKS, in the words of a client."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import hiredis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parsed_session import ParsedSession
from recorded_session import House

from rlite_pubsub.storage.topics import entry_ids
from rlite_pubsub.storage.topics.chunks import Chunk


def entries_of(values: list[bytes]) -> list[Any]:
    """What XRANGE would have said."""
    found: list[Any] = []
    for value in values:
        chunk = Chunk(b"", value)
        for place, entry in enumerate(chunk.entries()):
            reader = hiredis.Reader()
            reader.feed(entry)
            found.append(reader.gets())
            assert found[-1][0] == entry_ids.text(entry_ids.unpack(chunk.id(place)))
    return found


def fill(client: ParsedSession, count: int) -> None:
    for number in range(1, count + 1):
        client.do("XADD", "t", f"{number}-7", "f", "x" * (number % 300))


def test_what_is_exported_is_what_xrange_says(client: ParsedSession) -> None:
    fill(client, 500)
    assert entries_of(client.do("TOPIC.EXPORT", "t", "-", "+")) == client.do("XRANGE", "t", "-", "+")
    assert client.do("TOPIC.EXPORT", "nothing", "-", "+") == []


def test_whole_chunks_are_sent_as_they_are_stored(client: ParsedSession) -> None:
    fill(client, 500)
    values = client.do("TOPIC.EXPORT", "t", "-", "+")
    topic = client.session.engine.keyspace.find(0, b"t")
    assert values == [part.chunk.value for part in topic.between()]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 320), st.integers(0, 320), st.integers(1, 400), st.integers(1, 30_000))
def test_a_range_is_read_piece_by_piece_without_a_gap(start: int, end: int, count: int, size: int) -> None:
    client = ParsedSession(House())
    fill(client, 300)
    found: list[Any] = []
    at = f"{start}"
    while values := client.do("TOPIC.EXPORT", "t", at, f"({end}-7", "COUNT", f"{count}", "BYTES", f"{size}"):
        piece = entries_of(values)
        assert len(piece) <= count
        found += piece
        at = "(" + piece[-1][0].decode()
    assert found == client.do("XRANGE", "t", f"{start}", f"({end}-7")


def test_a_reply_has_no_more_bytes_than_asked_for_but_for_one_chunk(client: ParsedSession) -> None:
    fill(client, 1000)
    assert len(client.do("TOPIC.EXPORT", "t", "-", "+", "BYTES", "1")) == 1
    assert sum(map(len, client.do("TOPIC.EXPORT", "t", "-", "+", "BYTES", "20000"))) < 20_000 + 4096


def test_complete_refuses_a_range_of_which_entries_were_trimmed(client: ParsedSession) -> None:
    fill(client, 10)
    client.do("XDEL", "t", "1-7", "5-7")  # somebody wanted that
    assert client.do("TOPIC.EXPORT", "t", "1-7", "+", "COMPLETE")
    client.do("XTRIM", "t", "MINID", "4")
    assert client.do("TOPIC.EXPORT", "t", "(3-7", "+", "COMPLETE")
    refusal = client.do("TOPIC.EXPORT", "t", "3-7", "+", "COUNT", "1", "COMPLETE")
    assert str(refusal) == "DATALOSS entries of t from 3-7 on are gone: it was trimmed up to 3-7"
    assert client.do("TOPIC.EXPORT", "t", "3-7", "+")
    assert str(client.do("TOPIC.EXPORT", "nothing", "-", "+", "COMPLETE")) == "ERR no such key"


@pytest.mark.parametrize("words", [["COUNT"], ["COUNT", "0"], ["BYTES", "x"], ["ALL"]])
def test_what_is_no_option_is_refused(client: ParsedSession, words: list[str]) -> None:
    assert isinstance(client.do("TOPIC.EXPORT", "t", "-", "+", *words), hiredis.ReplyError)
    if words[0] != "BYTES":
        assert isinstance(client.do("TOPIC.MARKS", "t", "-", "+", "5", *words), hiredis.ReplyError)


def test_another_key_than_a_topic_is_refused(client: ParsedSession) -> None:
    client.do("SET", "s", "v")
    assert str(client.do("TOPIC.EXPORT", "s", "-", "+")).startswith("WRONGTYPE")


@pytest.mark.parametrize("every", [1, 7, 100, 299, 300, 301])
def test_marks_cut_a_range_into_equal_pieces(client: ParsedSession, every: int) -> None:
    fill(client, 310)
    told = client.do("TOPIC.MARKS", "t", "5", "304-7", f"{every}")
    ids = [entry[0] for entry in client.do("XRANGE", "t", "5", "304-7")]
    assert told == {b"entries": 300, b"last": b"304-7", b"marks": ids[every - 1 :: every]}
    edges = [b"4-7", *told[b"marks"]]
    for one, other in pairwise(edges):
        assert len(client.do("XRANGE", "t", b"(" + one, other)) == every


def test_marks_look_at_no_more_entries_than_asked_for(client: ParsedSession) -> None:
    fill(client, 310)
    assert client.do("TOPIC.MARKS", "t", "-", "+", "100", "COUNT", "250") == {
        b"entries": 250, b"last": b"250-7", b"marks": [b"100-7", b"200-7"],
    }  # fmt: skip
    assert client.do("TOPIC.MARKS", "nothing", "-", "+", "1") == {b"entries": 0, b"last": None, b"marks": []}
