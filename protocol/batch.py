"""Many requests at once, in C: hiredis behind a guard, and runs.

hiredis is a parser of replies. Fed with requests it is fast, but it allocates what a header announces and
takes shapes that Redis refuses. So
  - it sees a chunk only if the arrays that the chunk could announce, nested or hidden, are paid for by its bytes, and
  - what it returns is believed only if it can be nothing else (arrays of bytes, and no byte that begins another kind of
    string), or if the chunk begins with exactly those requests, written as a client writes them.
Otherwise its answer is thrown away and the exact parser (parser.py) reads the same bytes. Doubt costs
time, never truth.

A *run* is a chunk of requests that differ only in their last argument, as a publisher's pipeline to one channel does.
It is cut with one `split` and proved by its lengths; the last arguments keep their length headers (`5\\r\\nhello`),
because that is how they go out again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, repeat
from typing import cast

import hiredis

_FIRST = re.compile(rb"\*[1-9]\d{0,8}\r\n")
_COUNTS = {
    b"*": re.compile(rb"\*(\d{2,9})"),
    b"%": re.compile(rb"%(\d{1,9})"),
    b"~": re.compile(rb"~(\d{1,9})"),
    b">": re.compile(rb">(\d{1,9})"),
    b"|": re.compile(rb"\|(\d{1,9})"),
}
"""What may announce elements to hiredis, anywhere: an argument's terminator is not checked and may hide a header.
An array of fewer than ten costs about as much as its header."""

_written = cast("Callable[[tuple[bytes, ...]], bytes]", hiredis.pack_command)
_MIN_ARGUMENT_BYTES = len(b"$0\r\n\r\n")
_MIN_REQUEST_BYTES = len(b"*1\r\n$0\r\n\r\n")
_SENTINEL = b"+x\r\n"
"""Answered with an x where a request may begin, and with anything else where something is under way: an argument that
still lacks its end would begin with the plus."""
_NO_MORE = object()
"""Not hiredis's own False, which equals the false and the zero that a chunk may hold."""
_LISTS, _BYTES = {list}, {bytes}
_MAX_RUN_HEAD_BYTES = 1024


class Run:
    """Requests with one head: `head` is all arguments but the last, `tails` the last ones (`<length>\\r\\n<bytes>`)."""

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
        self._reader = hiredis.Reader(notEnoughData=_NO_MORE)

    def read(self, data: bytes) -> tuple[list[list[bytes]], int] | None:
        """The requests that `data` begins with, and how many of its bytes they took.

        `data` must begin where a request begins. None where the exact parser must look.
        """
        if not _FIRST.match(data) or not _is_paid_for(data):
            return None
        found = None
        if b"+" not in data and b"=" not in data and b"(" not in data:
            found = self._read_types(data)
        return found or self._read_proved(data)

    def _read_types(self, data: bytes) -> tuple[list[list[bytes]], int] | None:
        """The quick way: arrays of bytes up to the last byte are requests, if no byte can begin a simple string, a
        verbatim string or a big number, which would be bytes too."""
        end = len(data)
        if not data.endswith(b"\r\n"):
            end = data.rfind(b"\r\n*") + 2
            if end < _MIN_REQUEST_BYTES:
                return None
            data = data[:end]
        reader = self._reader
        try:
            reader.feed(data)
            commands = list(iter(reader.gets, _NO_MORE))
            reader.feed(_SENTINEL)
            if (
                reader.gets() == b"x"
                and set(map(type, commands)) == _LISTS
                and set(map(type, chain.from_iterable(commands))) == _BYTES
            ):
                return commands if all(commands) else [command for command in commands if command], end
        except Exception:
            pass  # the slower way finds out what it is
        self._reader = hiredis.Reader(notEnoughData=_NO_MORE)
        return None

    def _read_proved(self, data: bytes) -> tuple[list[list[bytes]], int] | None:
        """What hiredis says, as far as the same requests written again are the bytes that it was given."""
        commands: list[list[bytes]] = []
        proof = b""
        try:
            self._reader.feed(data)
            commands += iter(self._reader.gets, _NO_MORE)
            proof = b"".join(map(_written, map(tuple, commands)))
        except Exception:
            # Whatever hiredis or the shape of its answer objects to, the exact parser finds what Redis says of it.
            commands = []
        if len(proof) < len(data):
            self._reader = hiredis.Reader(notEnoughData=_NO_MORE)
        if not commands or not data.startswith(proof):
            return None
        if [] in commands:
            commands = [command for command in commands if command]
        return commands, len(proof)


def _is_paid_for(data: bytes) -> bool:
    """Whether all that could be announced in `data` would fit into it as arguments."""
    announced = 0
    for kind, header in _COUNTS.items():
        if kind in data:
            announced += sum(map(int, header.findall(data)))
    return announced * _MIN_ARGUMENT_BYTES <= len(data)


def run_prefix(command: list[bytes]) -> bytes:
    """What every request of a run with this command's head begins with; empty where a run is not worth it."""
    head = command[:-1]
    if not head or sum(map(len, head)) > _MAX_RUN_HEAD_BYTES:
        return b""
    parts = [b"*%d\r\n" % len(command)]
    parts += [b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in head]
    return b"".join(parts) + b"$"


def split_run(data: bytes, prefix: bytes) -> tuple[list[bytes], int] | None:
    """The tails of the run that `data` is, and how many bytes they took (an incomplete request is left); or None."""
    end = len(data)
    if not data.endswith(b"\r\n"):
        end = data.rfind(b"\r\n" + prefix) + 2
        if end < 3:
            return None
    whole = data[len(prefix) : end - 2]
    at = whole.find(b"\r\n")
    if at > 0 and whole[:at] == b"%d" % (len(whole) - at - 2):
        return [whole], end  # one request, as of a publisher that waits for each reply
    tails = whole.split(b"\r\n" + prefix)
    first = tails[0]
    header = first[: first.find(b"\r\n") + 2]
    if (
        len(tails) > 2
        and header == b"%d\r\n" % (len(first) - len(header))
        and set(map(len, tails)) == {len(first)}
        and all(map(bytes.startswith, tails, repeat(header)))
    ):
        return tails, end
    for tail in tails:
        length, newline, payload = tail.partition(b"\r\n")
        if not newline or length != b"%d" % len(payload):
            return None
    return tails, end
