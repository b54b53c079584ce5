"""A message between linked stores: what was published, and where it entered.

A frame is what goes to a peer in one message of its own:

    frame     version u8 | kind u8 | body
    DATA      envelopes, one behind another
    HELLO     JSON                            (as every other kind)

    envelope  origin u64 | number u64 | hops u8 | kind of name u8
              | lengths: places u16, born u32, channel u32, payload u32
              | places, with line feeds between | born | channel | payload

Numbers of one origin only grow, in the order in which messages entered there. An origin is one run of a process with
links, never used again. The places are those of servers that know nothing of envelopes: where the message entered, or
nothing, and those that have it from a store on its way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from struct import Struct, error
from typing import Any, Final, NamedTuple

VERSION: Final = 1
DATA, HELLO, WELCOME, NAMES, ALIVE, WHO, BYE = range(7)
"""What a frame is: messages; who begins; the answer to that; which names are wanted; a sign of life; the frame before
is of nobody that is known; the end."""
MOST_HOPS: Final = 32
_HEAD: Final = Struct(">BB")
_ENVELOPE: Final = Struct(">QQBBHIII")


class BadFrame(ValueError):
    """The data is not a frame of this version."""


class Envelope(NamedTuple):
    """One message on its way."""

    origin: int
    number: int
    hops: int
    kind: int
    """Kind.index of the name that it was published to."""
    entry: bytes
    born: bytes
    """The channel's name where it entered; a link with a prefix changes it on the way."""
    channel: bytes
    payload: bytes
    told: tuple[bytes, ...] = ()


def pack(envelopes: Iterable[Envelope]) -> bytes:
    """Return a frame of messages."""
    parts = [_HEAD.pack(VERSION, DATA)]
    for origin, number, hops, kind, entry, born, channel, payload, told in envelopes:
        if told:
            entry = b"\n".join((entry, *told))
        if born == channel:
            born = b""
        lengths = len(entry), len(born), len(channel), len(payload)
        parts.append(_ENVELOPE.pack(origin, number, hops, kind, *lengths))
        parts += (entry, born, channel, payload)
    return b"".join(parts)


def unpack(frame: bytes) -> Iterator[Envelope]:
    """Yield the messages of a frame of kind DATA. Raises BadFrame."""
    at, end = _HEAD.size, len(frame)
    while at < end:
        try:
            origin, number, hops, kind, entry_size, born_size, channel_size, size = _ENVELOPE.unpack_from(frame, at)
        except error as failure:
            raise BadFrame("an envelope is cut off") from failure
        at += _ENVELOPE.size
        born_at = at + entry_size
        channel_at = born_at + born_size
        payload_at = channel_at + channel_size
        following = payload_at + size
        if following > end:
            raise BadFrame("an envelope is cut off")
        channel = frame[channel_at:payload_at]
        born = frame[born_at:channel_at] or channel
        entry = frame[at:born_at]
        told: tuple[bytes, ...] = ()
        if b"\n" in entry:
            entry, *others = entry.split(b"\n")
            told = tuple(others)
        yield Envelope(origin, number, hops, kind, entry, born, channel, frame[payload_at:following], told)
        at = following


def said(kind: int, **words: Any) -> bytes:
    """Return a frame of another kind. Names are text here, a character for each byte."""
    return _HEAD.pack(VERSION, kind) + json.dumps(words).encode()


def kind_of(frame: bytes) -> int:
    """Raises BadFrame."""
    if len(frame) < _HEAD.size or frame[0] != VERSION:
        raise BadFrame("the other side speaks another version")
    return frame[1]


def words_of(frame: bytes) -> dict[str, Any]:
    """Return the words of such a frame. Raises BadFrame."""
    try:
        words = json.loads(frame[_HEAD.size :])
    except ValueError as failure:
        raise BadFrame("a frame can't be read") from failure
    if not isinstance(words, dict):
        raise BadFrame("a frame can't be read")
    return words
