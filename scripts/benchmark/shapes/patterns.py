"""Ten thousand patterns of one client, of which exactly one matches each channel."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack

from .. import load, wire
from ..client import Client
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading
from ..traffic import Publisher, drive
from .fanout import BATCHES_OWED

PATTERNS = 10_000
PATTERNS_AT_ONCE = 500
DEPTH = 64
PAYLOAD = b"p" * 100
HOT_CHANNELS = 100


def hold_patterns(client: Client, count: int) -> None:
    """PSUBSCRIBE in batches, each confirmed with the number of patterns held."""
    for first in range(0, count, PATTERNS_AT_ONCE):
        numbers = range(first, min(first + PATTERNS_AT_ONCE, count))
        names = [load.pattern_and_channel(number, 0)[0] for number in numbers]
        answer = b"".join(
            wire.confirmation(b"psubscribe", name, held + 1) for held, name in zip(numbers, names, strict=True)
        )
        client.call(wire.command(b"PSUBSCRIBE", *names), answer)


class Patterns(Shape):
    """Publishes a second, each matched against all patterns and delivered once."""

    def __init__(self, name: str, sentence: str, at_least: float) -> None:
        self.name = name
        self.sentence = sentence
        self.figures = (Figure("rate", "publish/s", target=Target(at_least)),)

    @abstractmethod
    def batches(self) -> Iterator[load.Batch]:
        """What the publisher sends in this round."""

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            subscriber = stack.enter_context(server.connect())
            hold_patterns(subscriber, PATTERNS)
            publisher = stack.enter_context(server.connect())
            pattern, channel = load.pattern_and_channel(PATTERNS // 2, 0)
            publisher.call(wire.publish(channel, PAYLOAD), wire.integer(1))
            subscriber.expect(wire.pattern_message(pattern, channel, PAYLOAD))
            owed = BATCHES_OWED * DEPTH * len(wire.pattern_message(pattern, channel, PAYLOAD))
            tally = drive(server, [Publisher(publisher, self.batches())], [subscriber], effort.seconds, owed)
            return (command_reading(tally),)


class HotChannels(Patterns):
    """A hundred channels that come again and again."""

    def batches(self) -> Iterator[load.Batch]:
        step = PATTERNS // HOT_CHANNELS
        return load.hot_names(
            [load.pattern_and_channel(number * step, number) for number in range(HOT_CHANNELS)], PAYLOAD, DEPTH
        )


class NewChannels(Patterns):
    """A channel that was never heard of before, every time, in later rounds too."""

    def batches(self) -> Iterator[load.Batch]:
        return load.new_names(PATTERNS, PAYLOAD, DEPTH, start=time.monotonic_ns() // 1000 % 10**11)


SHAPES: tuple[Shape, ...] = (
    HotChannels("patterns-hot", "10,000 patterns, one matches; 100 hot channels, 64-deep publisher", 50.0),
    NewChannels("patterns-new", "10,000 patterns, one matches; a new channel every time, 64-deep publisher", 10.0),
)
