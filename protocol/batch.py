"""Many requests at once, in C: hiredis behind a guard, and runs.

hiredis is a parser of replies. Fed with requests it is fast, but it allocates what a header announces and
takes shapes that Redis refuses. So it sees a chunk only if
  - the chunk begins a request, and nothing in it looks like what only a reply may hold, and
  - afterwards it stands at the end of a request, which a sentinel proves.
Otherwise its answer is thrown away and the exact parser (parser.py) reads the same bytes. Doubt costs time, never truth.

A *run* is a chunk of requests that differ only in their last argument, as a publisher's pipeline to one channel does.
It is cut with one `split` and proved by its lengths; the last arguments keep their length headers (`5\\r\\nhello`),
because that is how they go out again.
"""

from __future__ import annotations

import re

import hiredis

_SUSPECT = re.compile(rb"[*>~%|]\d{5}|\n(?:[-+:,#_(=~%|>!]|\*(?![1-9]\d{0,3}\r\n)|\$(?!\d))")
"""A type byte of replies, a multibulk header out of the ordinary (or cut off), a null; or a huge count anywhere,
because an argument's terminator is not checked and may hide a header."""

_FIRST = re.compile(rb"\*[1-9]\d{0,3}\r\n")
_SENTINEL = b"+\r\n"
_MAX_RUN_HEAD_BYTES = 1024


class Run:
    """Requests with one head: `head` is all arguments but the last, `tails` the last ones, each `<length>\\r\\n<bytes>`."""

    __slots__ = ("head", "tails")

    def __init__(self, head: list[bytes], tails: list[bytes]) -> None:
        self.head = head
        self.tails = tails

    def commands(self) -> list[list[bytes]]:
        """The same requests, one by one."""
        return [[*self.head, tail[tail.index(b"\r\n") + 2 :]] for tail in self.tails]


class BatchReader:
    """hiredis behind its guard. One for each thread: a chunk goes in and comes out within one call."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = hiredis.Reader()

    def read(self, data: bytes) -> tuple[list[list[bytes]], int] | None:
        """The requests that `data` begins with, and how many of its bytes they took; None where the exact parser must look.

        `data` must begin where a request begins.
        """
        end = len(data)
        if not data.endswith(b"\r\n"):
            end = data.rfind(b"\r\n*") + 2
            if end < 3:
                return None
            data = data[:end]
        if not _FIRST.match(data) or _SUSPECT.search(data):
            return None
        reader = self._reader
        try:
            reader.feed(data)
            commands = list(iter(reader.gets, False))
            reader.feed(_SENTINEL)
            if reader.gets() == b"":
                return commands, end
        except hiredis.ProtocolError:
            pass
        self._reader = hiredis.Reader()
        return None


def run_prefix(command: list[bytes]) -> bytes:
    """What every request of a run with this command's head begins with; empty where a run is not worth it."""
    head = command[:-1]
    if not head or sum(map(len, head)) > _MAX_RUN_HEAD_BYTES:
        return b""
    parts = [b"*%d\r\n" % len(command)]
    parts += [b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in head]
    return b"".join(parts) + b"$"


def split_run(data: bytes, prefix: bytes) -> tuple[list[bytes], int] | None:
    """The tails of the run that `data` is, and how many bytes it took (a last, incomplete request is left); None if it is no run."""
    end = len(data)
    if not data.endswith(b"\r\n"):
        end = data.rfind(b"\r\n" + prefix) + 2
        if end < 3:
            return None
    separator = b"\r\n" + prefix
    tails = data[len(prefix) : end - 2].split(separator)
    first = tails[0]
    header = first[: first.find(b"\r\n") + 2]
    if (
        len(tails) > 2
        and header == b"%d\r\n" % (len(first) - len(header))
        and set(map(len, tails)) == {len(first)}
        and data.count(separator + header, 0, end) == len(tails) - 1
    ):
        return tails, end
    for tail in tails:
        length, _, payload = tail.partition(b"\r\n")
        if length != b"%d" % len(payload):
            return None
    return tails, end
