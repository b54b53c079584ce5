"""Requests as an append-only file has them."""

from __future__ import annotations

import io

import pytest

from rlite_pubsub.protocol.appended import Broken, Truncated, read_requests
from rlite_pubsub.replication.units import read_units

SET = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$2\r\n\r\n\r\n"


def read(data: bytes) -> list[tuple[list[bytes], int]]:
    return list(read_requests(io.BytesIO(data)))


def test_requests_are_read_with_their_sizes_and_with_what_stands_in_front_of_them() -> None:
    assert read(b"#TS:17\r\n" + SET + b"\r\n\n" + SET) == [
        ([b"SET", b"a", b"\r\n"], 8 + len(SET)),
        ([b"SET", b"a", b"\r\n"], 3 + len(SET)),
    ]


@pytest.mark.parametrize("size", range(1, len(SET)))
def test_a_request_that_is_cut_is_said_to_be(size: int) -> None:
    with pytest.raises(Truncated):
        read(SET + SET[:size])


@pytest.mark.parametrize(
    "data", [b"PING\r\n", b"*x\r\n", b"*-1\r\n", b"*1\r\n:1\r\n", b"*1\r\n$1\r\nabc\r\n", b"*99999999999\r\n"]
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(Broken):
        read(data)


@pytest.mark.parametrize(
    "data",
    [b"*2147483647\r\n" + b"$1\r\na\r\n" * 9, b"*1\r\n$5\r\nMULTI\r\n" + b"*1\r\n$1\r\na\r\n" * 9],
    ids=["a request", "a transaction"],
)
def test_what_no_memory_holds_is_refused_when_it_is_too_much_and_not_at_its_end(data: bytes) -> None:
    with pytest.raises(Broken, match="too much memory"):
        list(read_units(io.BytesIO(data), most_cost=400))
