"""Letters, which publishers put into the mailboxes of other processes: a run of messages to one name.

    +---------+-----------+------------+------+---------------------------------------+
    | kind u8 | count u32 | name u32   | name | count times: $ length CRLF payload CRLF |
    +---------+-----------+------------+------+---------------------------------------+

kind: 0 a channel, 2 a sharded channel. The length is decimal, as on the wire: a run goes out as it came in.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

_HEAD: Final = Struct(">BII")


class MessageRun(NamedTuple):
    """Messages to one name; `messages` is how many, `body` their framed payloads."""

    kind: int
    messages: int
    name: bytes
    body: bytes


def pack(kind: int, name: bytes, tails: list[bytes]) -> bytes:
    """Pack a run; each tail is `<length>\\r\\n<payload>`."""
    return b"%b%b$%b\r\n" % (_HEAD.pack(kind, len(tails), len(name)), name, b"\r\n$".join(tails))


def pack_one(kind: int, name: bytes, payload: bytes) -> bytes:
    """Pack a run of a single message."""
    return b"%b%b$%d\r\n%b\r\n" % (_HEAD.pack(kind, 1, len(name)), name, len(payload), payload)


def unpack(letter: bytes) -> MessageRun:
    """Return the run that was packed."""
    kind, count, name_bytes = _HEAD.unpack_from(letter)
    end = _HEAD.size + name_bytes
    return MessageRun(kind, count, letter[_HEAD.size : end], letter[end:])


def tails(run: MessageRun) -> list[bytes]:
    """Return the messages of a run as they were packed, from length to length: the payloads may hold anything. Raises
    ValueError for what is no run."""
    body, found, at = run.body, [], 0
    while at < len(body):
        newline = body.index(b"\r\n", at)
        if newline == at:
            raise ValueError("a message without a length")
        length = int(body[at + 1 : newline])
        if length < 0:
            raise ValueError("a message of a negative length")
        end = newline + 2 + length
        found.append(body[at + 1 : end])
        at = end + 2
    return found
