"""Many subscribers on one channel, one publisher that pipelines."""

from __future__ import annotations

from contextlib import ExitStack

from .. import load, wire
from ..client import Client
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target, delivery_reading
from ..traffic import Publisher, drive

CHANNEL = b"fanout"
BATCHES_OWED = 4  # publishing pauses while subscribers are owed this much, or this many bytes each:
BYTES_OWED = 1 << 20  # what fits between the kernels' buffers, so that nobody counts as slow


def subscribed(server: Server, stack: ExitStack, count: int, protocol: int = wire.RESP2) -> list[Client]:
    subscribers = []
    for _ in range(count):
        client = stack.enter_context(server.connect())
        if protocol == wire.RESP3:
            client.speak_resp3()
        client.subscribe(CHANNEL, protocol=protocol)
        subscribers.append(client)
    return subscribers


def prove_delivery(publisher: Client, subscribers: list[Client], payload: bytes, protocol: int = wire.RESP2) -> None:
    """One message that is compared byte by byte at every subscriber, before bytes are only counted."""
    publisher.call(wire.publish(CHANNEL, payload), wire.integer(len(subscribers)))
    for client in subscribers:
        client.expect(wire.message(CHANNEL, payload, protocol))


class Fanout(Shape):
    """Deliveries a second, until all have arrived."""

    def __init__(
        self,
        name: str,
        sentence: str,
        subscribers: int,
        at_least: float,
        payload_bytes: int = 100,
        depth: int = 64,
        protocol: int = wire.RESP2,
    ) -> None:
        self.name = name
        self.sentence = sentence
        self.figures = (Figure("rate", "deliveries/s", target=Target(at_least)),)
        self._subscribers = subscribers
        self._payload = b"p" * payload_bytes
        self._depth = depth
        self._protocol = protocol

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        size = len(wire.message(CHANNEL, self._payload, self._protocol))
        count = self._subscribers
        with ExitStack() as stack:
            subscribers = subscribed(server, stack, count, self._protocol)
            client = stack.enter_context(server.connect())
            prove_delivery(client, subscribers, self._payload, self._protocol)
            publisher = Publisher(client, load.same(CHANNEL, self._payload, self._depth, count, size * count))
            owed = count * min(BATCHES_OWED * self._depth * size, BYTES_OWED)
            return (delivery_reading(drive(server, [publisher], subscribers, effort.seconds, owed), size),)


SHAPES: tuple[Shape, ...] = (
    Fanout("fanout-1", "1 subscriber, 64-deep publisher", 1, 1.0),
    Fanout("fanout-10", "10 subscribers, 64-deep publisher", 10, 1.3),
    Fanout("fanout-100", "100 subscribers, 64-deep publisher", 100, 1.8),
    Fanout("fanout-100-resp3", "100 RESP3 subscribers, 64-deep publisher", 100, 1.8, protocol=wire.RESP3),
    Fanout("fanout-1000", "1000 subscribers, 64-deep publisher", 1000, 1.6),
    Fanout("fanout-10-16k", "10 subscribers, 16 KB payloads, 64-deep publisher", 10, 1.0, 16 * 1024),
)
