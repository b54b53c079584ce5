"""What a publisher sends: batches, built before the clock runs wherever the work allows it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle, repeat
from typing import NamedTuple

from . import wire

MIXED_SEED = 20_26
MIXED_BATCHES = 128
MIXED_CHANNELS = 1000


class Batch(NamedTuple):
    """Commands that go out in one piece, the replies they must get, and the bytes all counted subscribers get."""

    wire: bytes
    replies: bytes
    commands: int
    delivered_bytes: int = 0
    lines: int = 0
    """Of the replies, where their bytes are not known."""


def same(channel: bytes, payload: bytes, depth: int, receivers: int = 0, delivered_bytes: int = 0) -> Iterator[Batch]:
    """One command, `depth` times; `delivered_bytes` is what one of them sends to all counted subscribers."""
    request = wire.publish(channel, payload)
    return repeat(Batch(request * depth, wire.integer(receivers) * depth, depth, delivered_bytes * depth))


def mixed(depth: int, skip: int = 0) -> Iterator[Batch]:
    """Channel and payload length change from command to command; the order is the same in every run."""
    chance = random.Random(MIXED_SEED + skip)
    channels = [b"mixed:" + b"x" * chance.randrange(1, 30) + b":%d" % number for number in range(MIXED_CHANNELS)]
    batches = []
    for _ in range(MIXED_BATCHES):
        requests = [wire.publish(chance.choice(channels), b"p" * chance.randrange(1, 400)) for _ in range(depth)]
        batches.append(Batch(b"".join(requests), wire.integer(0) * depth, depth))
    return cycle(batches)


def hot_names(names: list[tuple[bytes, bytes]], payload: bytes, depth: int) -> Iterator[Batch]:
    """Cycles through (pattern, channel) pairs; each channel is matched by its one pattern."""
    endless = cycle(names)
    rounds = len(names)  # after this many batches of `depth`, every pair has come up equally often
    return cycle([_matched([next(endless) for _ in range(depth)], payload) for _ in range(rounds)])


def new_names(patterns: int, payload: bytes, depth: int, start: int) -> Iterator[Batch]:
    """No channel name comes twice: the number at its end counts up from `start`."""
    number = start
    while True:
        names = [pattern_and_channel(count % patterns, count) for count in range(number, number + depth)]
        number += depth
        yield _matched(names, payload)


def pattern_and_channel(pattern: int, number: int) -> tuple[bytes, bytes]:
    return b"pattern:%05d:*" % pattern, b"pattern:%05d:%012d" % (pattern, number)


def _matched(names: list[tuple[bytes, bytes]], payload: bytes) -> Batch:
    """All pairs are of one length, so that one delivery's size stands for all."""
    depth = len(names)
    delivered = len(wire.pattern_message(*names[0], payload)) * depth
    tail = b"\r\n" + wire.bulk(payload)
    head = b"*3\r\n" + wire.bulk(b"PUBLISH") + b"$%d\r\n" % len(names[0][1])
    return Batch(b"".join([head + channel + tail for _, channel in names]), b":1\r\n" * depth, depth, delivered)
