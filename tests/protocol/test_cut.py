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


# -- the arguments of a request under way


@pytest.fixture(scope="module")
def cut_arguments() -> Any:
    return compiled(Path(batch.__file__).with_name("_cut.c")).cut_arguments


WORDS = [b"MSET", b"", b"\r\n$1\r\n", b"x" * 3000, *[b"%d" % number for number in range(40)]]
BODY = written(tuple(WORDS)).partition(b"\r\n")[2]


def test_arguments_are_cut_as_far_as_they_are_whole(cut_arguments: Any) -> None:
    ends = [0]
    for word in WORDS:
        ends.append(ends[-1] + len(b"$%d\r\n" % len(word)) + len(word) + 2)
    for size in range(len(BODY) + 1):
        found: list[bytes] = []
        end = cut_arguments(BODY[:size], 0, found, MOST, MOST)
        assert end == max(one for one in ends if one <= size) and found == WORDS[: ends.index(end)]


def test_no_more_and_no_longer_arguments_are_cut_than_are_wanted(cut_arguments: Any) -> None:
    found: list[bytes] = []
    end = cut_arguments(b"PING" + BODY, 4, found, 3, MOST)
    assert found == WORDS[:3] and BODY[end - 4 :].startswith(b"$3000\r\n")
    assert cut_arguments(b"PING" + BODY, end, found, MOST, 2999) == end and found == WORDS[:3]
    assert cut_arguments(b"PING" + BODY, end, found, MOST, 3000) == 4 + len(BODY) and found == WORDS
    assert cut_arguments(BODY, 0, found, 0, MOST) == 0 and found == WORDS


def test_no_damage_makes_it_cut_what_is_no_argument(cut_arguments: Any) -> None:
    chance = random.Random(12)
    cuts = 0
    for _ in range(5000):
        data = mutated(chance, [BODY[:200], BODY[-150:], *TOKENS])
        found: list[bytes] = []
        end = cut_arguments(data, 0, found, MOST, MOST)
        assert by_reference([b"*%d\r\n" % (len(found) or 1) + data[:end]]) == ([found] if found else [], None), data
        cuts += len(found)
    assert cuts > 400


@pytest.mark.parametrize("wrong", [("text", 0, [], 1, 1), (b"", "0", [], 1, 1), (b"", 0, (), 1, 1), (b"", 0, [], 1)])
def test_what_is_not_bytes_has_no_arguments(cut_arguments: Any, wrong: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        cut_arguments(*wrong)


@pytest.mark.parametrize("place", [-1, 5])
def test_arguments_begin_within_the_bytes(cut_arguments: Any, place: int) -> None:
    with pytest.raises(ValueError):
        cut_arguments(b"$1\r\n", place, [], 1, 1)
