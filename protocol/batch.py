"""Many requests at once: cut where they are written as clients write them, by hiredis behind a guard, and runs.

A compiled package cuts requests out by itself (`CUT`, _cut.c), byte by byte, and takes nothing but what is plainly one.
In pure Python that would be slow, and hiredis does it, which is C.

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
from struct import Struct
from typing import Any, Final, cast

import hiredis

_FIRST: Final = re.compile(rb"\*[1-9]\d{0,8}\r\n")
_COUNTS: Final = {
    b"*": re.compile(rb"\*(\d{2,9})"),
    b"%": re.compile(rb"%(\d{1,9})"),
    b"~": re.compile(rb"~(\d{1,9})"),
    b">": re.compile(rb">(\d{1,9})"),
    b"|": re.compile(rb"\|(\d{1,9})"),
}
"""What may announce elements to hiredis, anywhere: an argument's terminator is not checked and may hide a header.
An array of fewer than ten costs about as much as its header."""

written: Final = cast("Callable[[tuple[bytes, ...]], bytes]", hiredis.pack_command)
"""A request as clients write it."""
_MIN_ARGUMENT_BYTES: Final = 6
"""$0\\r\\n\\r\\n"""
_MIN_REQUEST_BYTES: Final = len(b"*1\r\n$0\r\n\r\n")
_SENTINEL: Final = b"+x\r\n"
"""Answered with an x where a request may begin, and with anything else where something is under way: an argument that
still lacks its end would begin with the plus."""
_NO_MORE: Final = object()
"""Not hiredis's own False, which equals the false and the zero that a chunk may hold."""
_LISTS: Final = {list}
_BYTES: Final = {bytes}
_MAX_RUN_HEAD_BYTES: Final = 1024
_MAX_LENGTH_DIGITS: Final = 9
_KNIVES: Final[dict[tuple[int, int, int], Struct]] = {}
_MAX_KNIVES: Final = 256
_MOST: Final = 1 << 40
"""Requests at a time."""
_SCANNED_BYTES: Final = 512
"""Payloads from this length on are jumped over: to look through them for the next prefix would cost more."""


_in_c: Callable[[bytes, list[Any], int], int] | None
_arguments_in_c: Callable[[bytes, int, list[bytes], int, int], int] | None
try:
    from rlite_pubsub.protocol import _cut as _module
except ImportError:
    _in_c = _arguments_in_c = None
else:
    _in_c = _module.cut
    _arguments_in_c = _module.cut_arguments
CUT: Final = _in_c
"""Adds at most so many of the requests that bytes begin with to a list, and returns where the last of them ends. Where
a request is incomplete, or not what clients write, it stops: the exact parser must look. Of an argument's terminator
nothing is seen but that it is there. None: this package has no _cut.c."""
CUT_ARGUMENTS: Final = _arguments_in_c
"""The same for the arguments of a request under way, from a place in the bytes on, each of at most so many bytes."""


class Run:
    """Requests with one head: `head` is all arguments but the last, `tails` the last ones (`<length>\\r\\n<bytes>`)."""

    __slots__ = ("head", "tails")

    def __init__(self, head: list[bytes], tails: list[bytes]) -> None:
        self.head = head
        self.tails = tails

    def commands(self) -> list[list[bytes]]:
        """Return the same requests, one by one."""
        return [[*self.head, tail[tail.index(b"\r\n") + 2 :]] for tail in self.tails]


class BatchReader:
    """hiredis behind its guard. One for each thread: a chunk goes in and comes out within one call."""

    __slots__ = ("_reader",)

    def __init__(self) -> None:
        self._reader = hiredis.Reader(notEnoughData=_NO_MORE)

    def read(self, data: bytes) -> tuple[list[list[bytes]], int] | None:
        """Return the requests that `data` begins with, and how many of its bytes they took.

        `data` must begin where a request begins. None where the exact parser must look.
        """
        if CUT is not None:
            cut_out: list[list[bytes]] = []
            end = CUT(data, cut_out, _MOST)
            return (cut_out, end) if cut_out else None
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
        """Return what hiredis reads, as far as the same requests written again are the bytes that it was given."""
        commands: list[list[bytes]] = []
        proof = b""
        try:
            self._reader.feed(data)
            commands += iter(self._reader.gets, _NO_MORE)
            proof = b"".join(map(written, map(tuple, commands)))
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
    """Return whether everything that `data` could announce would fit into it as arguments."""
    announced = 0
    for kind, header in _COUNTS.items():
        if kind in data:
            announced += sum(map(int, header.findall(data)))
    return announced * _MIN_ARGUMENT_BYTES <= len(data)


def run_prefix(command: list[bytes]) -> bytes:
    """Return the beginning of every request of a run with this command's head; empty if a run is not worth it."""
    head = command[:-1]
    if not head or sum(map(len, head)) > _MAX_RUN_HEAD_BYTES:
        return b""
    parts = [b"*%d\r\n" % len(command)]
    parts += [b"$%d\r\n%b\r\n" % (len(arg), arg) for arg in head]
    return b"".join(parts) + b"$"


def split_run(data: bytes, prefix: bytes, at: int = 0) -> tuple[list[bytes], int] | None:
    """The tails of the run that begins at `at`, and where it ends: an incomplete request is left. None if it is no run.

    `prefix` stands at `at`.
    """
    start = at + len(prefix)
    newline = data.find(b"\r\n", start, start + _MAX_LENGTH_DIGITS + 2)
    if newline < 0:
        return None
    length = data[start:newline]
    if not length.isdigit():
        return None
    payload_bytes = int(length)
    if length != b"%d" % payload_bytes:
        return None
    end = newline + 2 + payload_bytes
    if end + 2 >= len(data):  # one request, as of a publisher that waits for each reply
        return ([data[start:end]], end + 2) if data.endswith(b"\r\n") and end + 2 == len(data) else None
    stride = end + 2 - at
    head = data[at : newline + 2]
    last = len(data) - (len(data) - at) % stride - stride
    if last > at + stride and data.startswith(head, at + stride) and data.startswith(head, last):
        run = _cut(data, prefix, at, data[start : newline + 2], end - start)
        if run is not None:
            return run
    if payload_bytes >= _SCANNED_BYTES:
        return _jump(data, prefix, at)
    return _split(data, prefix, at)


def _cut(data: bytes, prefix: bytes, at: int, header: bytes, size: int) -> tuple[list[bytes], int] | None:
    """All of one length: at a stride, and then put together again to see whether that was right."""
    separator = b"\r\n" + prefix
    count = (len(data) - at) // (len(separator) + size)
    shape = size, len(separator), count
    knife = _KNIVES.get(shape)
    if knife is None:
        if len(_KNIVES) >= _MAX_KNIVES:
            _KNIVES.clear()
        knife = _KNIVES[shape] = Struct(f"{size}s" + f"{len(separator)}x{size}s" * (count - 1))
    tails = list(knife.unpack_from(data, at + len(prefix)))
    end = at + count * (len(separator) + size)
    if b"%b%b\r\n" % (prefix, separator.join(tails)) == data[at:end] and all(
        map(bytes.startswith, tails, repeat(header))
    ):
        return tails, end
    return None


def _jump(data: bytes, prefix: bytes, at: int) -> tuple[list[bytes], int] | None:
    """Go from header to header, without looking at the payloads."""
    tails: list[bytes] = []
    separator = b"\r\n" + prefix
    begins = data.startswith(prefix, at)
    while begins:
        start = at + len(prefix)
        newline = data.find(b"\r\n", start, start + _MAX_LENGTH_DIGITS + 2)
        if newline < 0:
            break
        length = data[start:newline]
        if not length.isdigit() or length != b"%d" % int(length):
            break
        end = newline + 2 + int(length)
        begins = data.startswith(separator, end)
        if not begins and not data.startswith(b"\r\n", end):
            break
        tails.append(data[start:end])
        at = end + 2
    return (tails, at) if tails else None


def _split(data: bytes, prefix: bytes, at: int) -> tuple[list[bytes], int] | None:
    """Split at every prefix; then each piece must be as long as its header says."""
    tails = data[at + len(prefix) :].split(b"\r\n" + prefix)
    last = tails.pop()
    for tail in tails:
        length, newline, payload = tail.partition(b"\r\n")
        if not newline or length != b"%d" % len(payload):
            return None
    length, newline, payload = last.partition(b"\r\n")
    if newline and payload.endswith(b"\r\n") and length == b"%d" % (len(payload) - 2):
        tails.append(last[:-2])
        return tails, len(data)
    return (tails, len(data) - len(last) - len(prefix)) if tails else None
