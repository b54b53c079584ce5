"""Inline requests: every short line against a second splitter, and against the real server."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_parser import Refused, Words

from rlite_pubsub.protocol import inline
from rlite_pubsub.protocol.encoder import bulk

LINES = [
    (b"", []),
    (b" \t\v\f\r", []),
    (b"PING", [b"PING"]),
    (b'""', [b""]),
    (b"'' \"\"", [b"", b""]),
    (b'a"b"', [b"ab"]),
    (b'"a"b', None),
    (b'"a"\vb', [b"a", b"b"]),
    (b"a\vb", [b"a\vb"]),
    (b'"', None),
    (b"'", None),
    (b'"\\', None),
    (b'"\\"', None),
    (b"'\\'", None),
    (b"'\\''", [b"'"]),
    (b"'\\n'", [b"\\n"]),
    (b'"\\x00\\xfF"', [b"\x00\xff"]),
    (b'"\\x0"', [b"x0"]),
    (b'"\\x"', [b"x"]),
    (b'"\\n\\r\\t\\b\\a\\q\\\\"', [b"\n\r\t\b\aq\\"]),
    (b"\xff\x80 \xa0", [b"\xff\x80", b"\xa0"]),
]


@pytest.mark.parametrize(("line", "words"), LINES)
def test_a_line_is_split_as_a_shell_would(line: bytes, words: list[bytes] | None) -> None:
    assert inline.split(line) == words


def by_reference(line: bytes) -> list[bytes] | None:
    try:
        return [word.encode("latin-1") for word in Words(line.decode("latin-1")).all()]
    except Refused:
        return None


def test_every_short_line_is_split_as_the_reference_splits_it() -> None:
    for length in range(6):
        for line in itertools.product(b"\"'\\x4 \v\r", repeat=length):
            assert inline.split(bytes(line)) == by_reference(bytes(line)), bytes(line)


@settings(max_examples=1000, deadline=None)
@given(st.text(alphabet="\"'\\xfn09aA \t\r\v\f\xff", max_size=40) | st.text(max_size=40))
def test_any_line_is_split_as_the_reference_splits_it(text: str) -> None:
    line = text.encode("utf-8").replace(b"\0", b"").replace(b"\n", b"")
    assert inline.split(line) == by_reference(line)


def test_redis_splits_the_same_lines_the_same_way(reference: Any) -> None:
    lines = [line for line, _ in LINES]
    lines += [bytes(line) for length in range(4) for line in itertools.product(b"\"'\\x4 \v\r", repeat=length)]
    for line in lines:
        words = inline.split(b"ECHO " + line)
        answer = reference.answer(b"ECHO " + line + b"\n")
        if words is None:
            assert answer == b"-ERR Protocol error: unbalanced quotes in request\r\n", line
        elif len(words) == 2:
            assert answer == bulk(words[1]), line
        else:
            assert answer == b"-ERR wrong number of arguments for 'echo' command\r\n", line


def test_a_long_line_of_quotes_is_split_in_linear_time() -> None:
    assert inline.split(b'"\\x41" ' * 200_000) == [b"A"] * 200_000
    assert inline.split(b'"' + b"\\\\" * 500_000 + b'"') == [b"\\" * 500_000]
