"""Messages between linked stores: what was published, and where it entered.

A run of messages to one name, one after the other, shares an envelope: a pipeline of PUBLISH costs little more than one
of them. A frame is what goes to a peer in one message of its own:

    frame     version u8 | kind u8 | body
    DATA      envelopes, one behind another
    HELLO     JSON                            (as every other kind)

    envelope  origin u64 | number u64 | messages u32 | hops u8 | kind of name u8
              | lengths: places u16, born u32, channel u32, run u32
              | places, with line feeds between | born | channel | run
    run       for each message: $ length CRLF payload CRLF    (as in storage/mail/letters.py)

The number is of the first message; those behind it have the numbers that follow. Numbers of one origin only grow, in
the order in which messages entered there. An origin is one run of a process with links, never used again. The places
are those of servers that know nothing of envelopes: where the messages entered, or nothing, and those that have them
from a store on their way. The envelope of a marker (markers.py) has no run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from struct import Struct, error
from typing import Any, Final, NamedTuple

from rlite_pubsub.pubsub.post import tails_of
from rlite_pubsub.storage.mail.letters import MessageRun

VERSION: Final = 2
DATA, HELLO, WELCOME, NAMES, ALIVE, WHO, BYE = range(7)
"""What a frame is: messages; who begins; the answer to that; which names are wanted; a sign of life; the frame before
is of nobody that is known; the end."""
MOST_HOPS: Final = 32
_HEAD: Final = Struct(">BB")
_ENVELOPE: Final = Struct(">QQIBBHIII")


class BadFrame(ValueError):
    """The data is not a frame of this version."""


class Envelope(NamedTuple):
    """Messages on their way."""

    origin: int
    number: int
    """Of the first one."""
    length: int
    """How many messages."""
    hops: int
    kind: int
    """Kind.index of the name that they were published to."""
    entry: bytes
    born: bytes
    """The channel's name where it entered; a link with a prefix changes it on the way."""
    channel: bytes
    run: bytes
    told: tuple[bytes, ...] = ()

    @property
    def tails(self) -> list[bytes]:
        """The messages one by one, each `<length>\\r\\n<payload>`."""
        return tails_of(MessageRun(self.kind, self.length, self.channel, self.run))

    @property
    def is_whole(self) -> bool:
        """Return whether the run is as many messages as there are to be, and nothing else."""
        try:
            tails = self.tails
        except ValueError:
            return False
        return len(tails) == self.length and run_of(tails) == self.run

    def without(self, first: int) -> Envelope:
        """Return what is left without so many of them."""
        tails = self.tails[first:]
        return self._replace(number=self.number + first, length=len(tails), run=run_of(tails))


def run_of(tails: list[bytes]) -> bytes:
    """Return a run of messages, each `<length>\\r\\n<payload>`."""
    return b"$%b\r\n" % b"\r\n$".join(tails)


def pack(envelopes: Iterable[Envelope]) -> bytes:
    """Return a frame of messages."""
    parts = [_HEAD.pack(VERSION, DATA)]
    for origin, number, count, hops, kind, entry, born, channel, run, told in envelopes:
        if told:
            entry = b"\n".join((entry, *told))
        if born == channel:
            born = b""
        head = _ENVELOPE.pack(
            origin, number, count, hops, kind, len(entry), len(born), len(channel), len(run)
        )
        parts += (head, entry, born, channel, run)
    return b"".join(parts)


def unpack(frame: bytes) -> Iterator[Envelope]:
    """Yield the messages of a frame of kind DATA. Raises BadFrame."""
    at, end = _HEAD.size, len(frame)
    while at < end:
        try:
            head = _ENVELOPE.unpack_from(frame, at)
        except error as failure:
            raise BadFrame("an envelope is cut off") from failure
        origin, number, count, hops, kind, entry_size, born_size, channel_size, size = head
        at += _ENVELOPE.size
        born_at = at + entry_size
        channel_at = born_at + born_size
        run_at = channel_at + channel_size
        following = run_at + size
        if following > end:
            raise BadFrame("an envelope is cut off")
        channel = frame[channel_at:run_at]
        born = frame[born_at:channel_at] or channel
        entry = frame[at:born_at]
        told: tuple[bytes, ...] = ()
        if b"\n" in entry:
            entry, *others = entry.split(b"\n")
            told = tuple(others)
        messages = Envelope(origin, number, count, hops, kind, entry, born, channel, frame[run_at:following], told)
        if size and not messages.is_whole:
            raise BadFrame("an envelope does not hold the messages that it names")
        yield messages
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
    except (ValueError, RecursionError) as failure:
        raise BadFrame("a frame can't be read") from failure
    if not isinstance(words, dict):
        raise BadFrame("a frame can't be read")
    return words
