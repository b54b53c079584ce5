"""Requests cut out in C (_cut.c): what is cut is what the exact parser reads, up to where it was cut."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from c_module import compiled
from mutations import SEEDS, TOKENS, mutated
from reference_parser import by_reference

from rlite_pubsub.protocol import batch
from rlite_pubsub.protocol.batch import written

MOST = 1 << 40
REQUESTS = [(b"PING",), (b"SET", b"key", b""), (b"SET", b"key", b"x" * 5000), (b"MSET", *[b"a", b"\r\n"] * 40), (b"",)]


@pytest.fixture(scope="module")
def cut() -> Any:
    return compiled(Path(batch.__file__).with_name("_cut.c")).cut


def test_requests_as_clients_write_them_are_cut(cut: Any) -> None:
    data = b"".join(map(written, REQUESTS))
    found: list[list[bytes]] = []
    assert cut(data, found, MOST) == len(data)
    assert found == [list(request) for request in REQUESTS]


def test_no_more_are_cut_than_are_wanted(cut: Any) -> None:
    data = b"".join(map(written, REQUESTS))
    for most in range(len(REQUESTS)):
        found: list[list[bytes]] = []
        assert cut(data, found, most) == sum(len(written(request)) for request in REQUESTS[:most])
        assert found == [list(request) for request in REQUESTS[:most]]


def test_what_is_incomplete_is_left(cut: Any) -> None:
    data = b"".join(map(written, REQUESTS))
    ends = [0]
    for request in REQUESTS:
        ends.append(ends[-1] + len(written(request)))
    for size in range(len(data)):
        found: list[list[bytes]] = []
        end = cut(data[:size], found, MOST)
        assert end == max(one for one in ends if one <= size) and len(found) == ends.index(end)


@pytest.mark.parametrize(
    "data",
    [
        b"*0\r\n", b"*-1\r\n", b"*01\r\n$1\r\na\r\n", b"*1\n$1\r\na\r\n", b"*1\r\n$01\r\na\r\n", b"*1\r\n$-1\r\n",
        b"*1 \r\n", b"*1\r\n:1\r\n", b"*1\r\n$a\r\n", b"*1\r\n$\r\n\r\n", b"*\r\n", b"*", b"", b"PING\r\n",
        b"*1\r\n$1x\r\na\r\n", b"*99999999999999999999\r\n$1\r\na\r\n", b"*1\r\n$99999999999999999999\r\na\r\n",
        b"*1\0\r\n$1\r\na\r\n",
        b"*1073741824\r\n$1\r\na\r\n",
    ],
)  # fmt: skip
def test_anything_else_is_left_to_the_exact_parser(cut: Any, data: bytes) -> None:
    found: list[list[bytes]] = []
    assert cut(data, found, MOST) == 0 and found == []
    assert cut(written((b"PING",)) + data, found, MOST) == len(written((b"PING",))) and found == [[b"PING"]]


def test_no_damage_makes_it_cut_what_is_no_request(cut: Any) -> None:
    chance = random.Random(11)
    cuts = 0
    for _ in range(5000):
        data = mutated(chance, [*SEEDS, *TOKENS])
        found: list[list[bytes]] = []
        end = cut(data, found, MOST)
        assert by_reference([data[:end]]) == (found, None), data
        cuts += bool(found)
    assert cuts > 500


@pytest.mark.parametrize("wrong", [("text", [], 1), (b"", (), 1), (b"", [], None), (b"", [])])
def test_what_is_not_bytes_is_not_cut(cut: Any, wrong: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        cut(*wrong)
