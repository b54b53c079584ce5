"""What a subscriber that does not read costs the publisher and the one who reads."""

from __future__ import annotations

from contextlib import ExitStack

from .. import load, wire
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading
from ..traffic import Publisher, Tally, drive
from .fanout import BATCHES_OWED, CHANNEL, subscribed

PAYLOAD = b"p" * 100
DEPTH = 64
SMALL_BUFFER = 16 * 1024  # of the one who does not read, so that it soon counts as slow
LEAD_IN = 0.3  # share of the round that fills the kernel's buffers before the clock runs


class SlowSubscriber(Shape):
    """Half a round without, half a round with a second subscriber that never reads."""

    name = "slow-subscriber"
    sentence = "64-deep publisher, one subscriber reads; the loss when a second one does not (Redis: without its limit)"
    figures = (
        Figure("slowdown", "%", higher_is_better=False, target=Target(20.0, of_ratio=False)),
        Figure("rate with it", "publish/s"),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        alone = self._publish(server, effort.seconds / 2, slow=False)
        server.settle()
        hindered = self._publish(server, effort.seconds / 2, slow=True)
        before, after = command_reading(alone), command_reading(hindered)
        return Reading((1 - after.value / before.value) * 100, waited=after.waited), after

    def _publish(self, server: Server, seconds: float, slow: bool) -> Tally:
        size = len(wire.message(CHANNEL, PAYLOAD))
        with ExitStack() as stack:
            subscribers = subscribed(server, stack, 1)
            if slow:
                stack.enter_context(server.connect(SMALL_BUFFER)).subscribe(CHANNEL)
            batches = load.same(CHANNEL, PAYLOAD, DEPTH, 1 + slow, size)
            publisher = Publisher(stack.enter_context(server.connect()), batches)
            owed = BATCHES_OWED * DEPTH * size
            drive(server, [publisher], subscribers, seconds * LEAD_IN, owed)
            return drive(server, [publisher], subscribers, seconds, owed)


SHAPES: tuple[Shape, ...] = (SlowSubscriber(),)
