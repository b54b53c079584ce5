"""The parser: one table, every way of asking, every place to cut; and random streams against a second parser."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference_parser import (
    WAYS,
    Outcome,
    assert_all_ways_agree,
    by_next,
    by_reference,
    by_take,
    cut,
    written,
)
from request_cases import CASES, PING, PING_BYTES, Case

from rlite_pubsub.protocol.batch import BatchReader
from rlite_pubsub.protocol.parser import Parser

PREFIX = b"ERR Protocol error: "
PIPELINE = [[b"PUBLISH", b"news", b"\r\n*1\r\n"], [b"PUBLISH", b"news", b""], [b"SUBSCRIBE", b"a", b"b"]]


def outcome_of(case: Case) -> Outcome:
    return case.requests, None if case.error is None else PREFIX + case.error


def ways_for(case: Case) -> list:  # type: ignore[type-arg]
    return [by_reference, *WAYS] if case.trusted else [by_reference, by_next]


EACH_CASE = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@EACH_CASE
def test_a_stream_means_the_same_whole_and_byte_by_byte(case: Case) -> None:
    for way in ways_for(case):
        assert way([case.data], case.trusted) == outcome_of(case), way.__name__
        assert way([case.data[at : at + 1] for at in range(len(case.data))], case.trusted) == outcome_of(case), way


@EACH_CASE
def test_a_stream_means_the_same_wherever_it_is_cut_in_two(case: Case) -> None:
    places = range(len(case.data)) if len(case.data) < 300 else [*range(40), *range(40, len(case.data), 509)]
    for place in places:
        for way in ways_for(case)[1:]:
            assert way(cut(case.data, [place]), case.trusted) == outcome_of(case), (way.__name__, place)


@pytest.mark.parametrize("case", [case for case in CASES if not case.open], ids=lambda case: case.name)
def test_what_follows_a_request_does_not_change_it(case: Case) -> None:
    requests, error = outcome_of(case)
    after = written(PIPELINE)
    for place in {0, 1, len(case.data), len(case.data) + 1, len(case.data) + 17}:
        for way in ways_for(case)[1:]:
            outcome = way(cut(case.data + after, [place]), case.trusted)
            assert outcome == (requests if error else requests + PIPELINE, error), (way.__name__, place)


@pytest.mark.parametrize("case", [case for case in CASES if case.error is not None], ids=lambda case: case.name)
def test_garbage_after_an_error_is_not_looked_at(case: Case) -> None:
    for garbage in (b"\x00", b"\xff" * 100, b"*1000000000\r\n", b"'", b"\r\n" * 5):
        for way in ways_for(case):
            assert way([case.data + garbage], case.trusted) == outcome_of(case), (way.__name__, garbage)


@EACH_CASE
def test_what_precedes_a_request_is_executed_before_its_error(case: Case) -> None:
    requests, error = outcome_of(case)
    for place in {0, 1, 40, len(written(PIPELINE)), len(written(PIPELINE)) + 1}:
        for way in ways_for(case)[1:]:
            outcome = way(cut(written(PIPELINE) + case.data, [place]), case.trusted)
            assert outcome == (PIPELINE + requests, error), (way.__name__, place)


# -- limits on lines; here what a read brings does matter, as it does to Redis

LONG = 65536


@pytest.mark.parametrize(
    ("start", "error"),
    [
        (b"", b"too big inline request"),
        (b"\x00", b"too big inline request"),
        (b"*", b"too big mbulk count string"),
        (b"*\x00", b"too big mbulk count string"),
        (b"$\x00", b"too big inline request"),
        (b"*1\r\n", b"too big bulk count string"),
        (b"*1\r\n$", b"too big bulk count string"),
        (b"*1\r\n\x00", b"too big bulk count string"),
    ],
)
@pytest.mark.parametrize("after", [b"", b"\x00\r\n", b"\x00\n"])
def test_a_line_of_64_kb_may_go_on_and_a_longer_one_may_not(start: bytes, error: bytes, after: bytes) -> None:
    line = start.rpartition(b"\n")[2]
    filled = start + b"1" * (LONG - len(line) - len(after)) + after
    for chunks in ([filled], cut(filled, [1, 5, 30000]), [PING_BYTES, filled]):
        assert assert_all_ways_agree(chunks)[1] is None
        assert assert_all_ways_agree([*chunks, b"1"])[1] == PREFIX + error
        assert assert_all_ways_agree([*chunks[:-1], chunks[-1] + b"1"])[1] == PREFIX + error


def test_a_long_line_that_comes_at_once_is_taken() -> None:
    line = b"ECHO " + b"a" * 100_000
    assert assert_all_ways_agree([line + b"\r\n"]) == ([line.split()], None)
    assert assert_all_ways_agree([line, b"\r\n"]) == ([], PREFIX + b"too big inline request")


def test_an_argument_may_be_as_long_as_configured_and_no_longer() -> None:
    for limit in (0, 1, 100, 1000):
        for length in (limit - 1, limit, limit + 1):
            if length >= 0:
                data = written([[b"a" * length]]) * 4
                chunks = cut(data, [len(data) // 4, len(data) // 2])
                requests, error = assert_all_ways_agree(chunks, max_bulk_bytes=limit)
                assert (error is None) == (length <= limit)
                assert bool(requests) == (length <= limit)


def test_a_limit_that_changes_is_obeyed_by_the_next_argument() -> None:
    parser = Parser(BatchReader(), max_bulk_bytes=10)
    data = written([[b"a" * 10]])
    assert parser.take(data)
    parser.max_bulk_bytes = 9
    assert parser.take(data) == [] and parser.failure is not None


def test_each_request_may_change_what_the_next_one_may_be() -> None:
    parser = Parser(BatchReader(), trusted=False)
    parser.feed(PING_BYTES + written([[b"a"] * 11]))
    assert parser.next() == PING
    parser.trusted = True
    assert parser.next() == [b"a"] * 11
    assert parser.next() is None
    assert parser.take(PING_BYTES) == [PING]


# -- what is asked of a parser between chunks


def test_what_waits_is_counted() -> None:
    parser = Parser(BatchReader())
    parser.take(PING_BYTES + b"*2\r\n$4\r\nEC")
    assert parser.buffered_bytes == 2
    parser.take(b"HO\r\n$100000\r\n")
    assert parser.buffered_bytes == 0
    for waiting in range(1, 20001):
        parser.take(b"a")
        assert parser.buffered_bytes == waiting
    parser.take(b"a" * 80000)
    assert parser.take(b"\r\n") == [[b"ECHO", b"a" * 100_000]]
    assert parser.buffered_bytes == 0
    parser.take(b"PIN")
    assert parser.buffered_bytes == 3


# -- random streams

PIECES = [
    *(case.data for case in CASES if len(case.data) < 100),
    *(written([request]) for request in PIPELINE),
    written([[b"PUBLISH", b"news", b"x"]]) * 5,
    *(bytes([byte]) for byte in b"\r\n\x00*$-+:,#_(=~%|>!09x\"'\\ \t"),
    *(b"\r\n", b"xx", b"$1\r\n", b"*2\r\n", b"*99\r\n", b"$100\r\n", b"*1000000000\r\n", b"a" * 70000, b"\x00" * 65536),
]
STREAMS = st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=12).map(b"".join)


@st.composite
def chunked(draw: st.DrawFn) -> list[bytes]:
    """A stream that was valid once, in chunks."""
    data = bytearray(draw(STREAMS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b"\r", b"\n", b"\0", b"1", b"9", b"$", b"*"])
        )
    places = draw(st.lists(st.integers(0, min(len(data), 500)) | st.integers(0, len(data)), max_size=6))
    return cut(bytes(data), places)


@settings(max_examples=1500, deadline=None)
@given(chunked(), st.booleans(), st.sampled_from([2**29, 3, 1000]))
@example([b"*2\r\n$1\r\nAxx%1\r\n*1\r\n$1\r\nA\r\n$1\r\nB\r\n"], True, 2**29)
def test_the_reference_parser_agrees(chunks: list[bytes], trusted: bool, max_bulk_bytes: int) -> None:
    assert_all_ways_agree(chunks, trusted, max_bulk_bytes)


REQUESTS = st.lists(st.lists(st.binary(max_size=20), min_size=1, max_size=12), max_size=8)


@settings(max_examples=500, deadline=None)
@given(REQUESTS, st.lists(st.integers(0, 500), max_size=5))
def test_what_a_client_writes_is_read_back(requests: list[list[bytes]], places: list[int]) -> None:
    data = written(requests)
    assert assert_all_ways_agree(cut(data, [min(place, len(data)) for place in places])) == (requests, None)


# -- bounded work: each of these takes hours if anything in it is quadratic


def test_a_large_argument_in_small_chunks_is_read_in_linear_time() -> None:
    size = 64 * 1024 * 1024
    parser = Parser(BatchReader())
    assert parser.take(b"*2\r\n$4\r\nECHO\r\n$%d\r\n" % size) == []
    for _ in range(size // 1024):
        assert parser.take(b"a" * 1024) == []
    (request,) = parser.take(b"\r\n")
    assert isinstance(request, list) and request[1] == b"a" * size


@pytest.mark.parametrize("chunk_bytes", [100, 1000, 100_000, 10_000_000])
def test_a_million_arguments_are_read_in_linear_time(chunk_bytes: int) -> None:
    data = b"*1000000\r\n" + b"$1\r\na\r\n" * 1_000_000
    for way in (by_take, by_next):
        outcome = way(data[at : at + chunk_bytes] for at in range(0, len(data), chunk_bytes))
        assert outcome == ([[b"a"] * 1_000_000], None)


def test_a_million_requests_in_one_chunk_are_read_in_linear_time() -> None:
    for data, request in ((PING_BYTES, PING), (b"*1\r\n$0\r\n\n\n", [b""]), (b"PING\n", PING)):
        for way in (by_take, by_next):
            assert way([data * 100_000]) == ([request] * 100_000, None)
    assert by_take([b"\r\n" * 1_000_000]) == ([], None)


@pytest.mark.parametrize("start", [b"", b"*", b"*1\r\n$", b"*1\r\n$65535\r\n"])
def test_64_kb_byte_by_byte_are_read_in_bounded_time(start: bytes) -> None:
    assert by_take([start, *[b"1"] * 65535]) == ([], None)
