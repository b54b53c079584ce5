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
_WORD_COST = 64
MOST_COST = 3 << 30
"""About how much memory a request, or a transaction, may take. What a client may send (1 GiB) takes less, unless it is
all words of a few letters."""


class Broken(Exception):
    """The data is not a request."""


TOO_LARGE = "a request, or a transaction, that takes too much memory"


class Truncated(Exception):
    """The data ends within a request."""


def cost_of(words: list[bytes], size: int) -> int:
    """About how much memory a request of so many bytes takes."""
    return size + _WORD_COST * len(words)


class Source(Protocol):
    """Where requests come from, like a file opened for reading."""

    def readline(self, limit: int, /) -> bytes: ...

    def read(self, size: int, /) -> bytes: ...


def read_requests(source: Source, most_cost: int = MOST_COST) -> Iterator[tuple[list[bytes], int]]:
    """Each request, and how many bytes it takes, with what stands in front of it. Raises Truncated; and Broken, for one
    that takes more memory than `most_cost`, too."""
    passed_over = 0
    while head := source.readline(_LONGEST_REMARK):
        if not head.endswith(b"\n"):
            raise Truncated
        if head[:1] == b"#" or not head.strip():
            passed_over += len(head)
            continue
        size = passed_over + len(head)
        words: list[bytes] = []
        cost = 0
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
            cost += length + _WORD_COST
            if cost > most_cost:
                raise Broken(TOO_LARGE)
            size += len(line) + len(body)
        yield words, size
        passed_over = 0


def _number(line: bytes, kind: bytes, most: int) -> int:
    digits = line[1:].rstrip(b"\r\n")
    if line[:1] != kind or not digits.isdigit() or len(digits) > 10 or int(digits) > most:
        raise Broken(f"{kind.decode()} and a number should stand where {line[:20]!r} does")
    return int(digits)
