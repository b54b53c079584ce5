"""Requests as an append-only file and a master's stream have them: whole, one behind the other.

    *2\\r\\n $6\\r\\nSELECT\\r\\n $1\\r\\n0\\r\\n        a request
    #TS:1700000000\\r\\n                          a remark, passed over
    \\r\\n or \\n                                  nothing: a master says so to keep a connection open
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

_MOST_WORDS = 1 << 31
_MOST_BYTES = 1 << 30
_LONGEST_HEAD = 64
_LONGEST_REMARK = 1 << 16


class Broken(Exception):
    """The data is not a request."""


class Truncated(Exception):
    """The data ends within a request."""


class Source(Protocol):
    """Where requests come from, like a file opened for reading."""

    def readline(self, limit: int, /) -> bytes: ...

    def read(self, size: int, /) -> bytes: ...


def read_requests(source: Source) -> Iterator[tuple[list[bytes], int]]:
    """Each request, and how many bytes it takes, with what stands in front of it. Raises Broken, Truncated."""
    passed_over = 0
    while head := source.readline(_LONGEST_REMARK):
        if not head.endswith(b"\n"):
            raise Truncated
        if head[:1] == b"#" or not head.strip():
            passed_over += len(head)
            continue
        size = passed_over + len(head)
        words: list[bytes] = []
        for _ in range(_number(head, b"*", _MOST_WORDS)):
            line = source.readline(_LONGEST_HEAD)
            if not line.endswith(b"\n"):
                raise Truncated
            length = _number(line, b"$", _MOST_BYTES)
            body = source.read(length + 2)
            if len(body) < length + 2:
                raise Truncated
            if body[length:] != b"\r\n":
                raise Broken("a word of a request is longer than it says")
            words.append(body[:length])
            size += len(line) + len(body)
        yield words, size
        passed_over = 0


def _number(line: bytes, kind: bytes, most: int) -> int:
    digits = line[1:].rstrip(b"\r\n")
    if line[:1] != kind or not digits.isdigit() or len(digits) > 10 or int(digits) > most:
        raise Broken(f"{kind.decode()} and a number should stand where {line[:20]!r} does")
    return int(digits)
