"""The output of commands that follow: a line, a JSON object, or the bytes themselves, for each item."""

from __future__ import annotations

import argparse
import json
import re
import select
import sys
from typing import Protocol


class OutputItem(Protocol):
    """An entry, a message, an event."""

    def line(self) -> str:
        """Return it for people: one line, escaped."""

    def raw(self) -> bytes:
        """Return the bytes, without anything added."""

    def about(self) -> dict[str, object]:
        """Return it for programs."""


def add_output(parser: argparse.ArgumentParser) -> None:
    """The options of an `Output`."""
    parser.add_argument("-n", "--count", type=_count, help="stop after this many")
    parser.add_argument(
        "--filter", type=_pattern, metavar="REGEX", help="show only those whose line has a match (Python's syntax)"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON object a line")
    form.add_argument("--raw", action="store_true", help="bytes as they are, and a newline after each value")


class Output:
    """Standard output; each item is out when it is put."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._filter: re.Pattern[str] | None = arguments.filter
        self._left: int | None = arguments.count
        self._is_json: bool = arguments.json
        self._is_raw: bool = arguments.raw
        self._stream = sys.stdout.buffer
        self._poll = select.poll()
        self._poll.register(self._stream, 0)

    def put(self, item: OutputItem) -> bool:
        """Write an item; return whether more is wanted."""
        if self._filter is not None and not self._filter.search(item.line()):
            return True
        self._stream.write(self._bytes_of(item))
        self._stream.flush()
        if self._left is None:
            return True
        self._left -= 1
        return self._left > 0

    def check(self) -> None:
        """Check that somebody still reads: while nothing comes, no write would tell. Raises BrokenPipeError."""
        if self._poll.poll(0):
            raise BrokenPipeError

    def _bytes_of(self, item: OutputItem) -> bytes:
        if self._is_raw:
            return item.raw() + b"\n"
        line = json.dumps(item.about(), ensure_ascii=False) if self._is_json else item.line()
        return line.encode(errors="backslashreplace") + b"\n"


def _count(word: str) -> int:
    count = int(word)
    if count < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return count


def _pattern(word: str) -> re.Pattern[str]:
    try:
        return re.compile(word)
    except re.error as failure:
        raise argparse.ArgumentTypeError(f"{word!r} is not a regular expression: {failure}") from failure
