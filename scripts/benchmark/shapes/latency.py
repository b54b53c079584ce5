"""A publisher that waits for each reply, and how long a message is under way to each subscriber.

One process sends and receives, so one clock stamps both ends.
"""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack

from .. import wire
from ..client import PATIENCE_S, Client, WrongAnswer
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target, delivery_reading
from ..traffic import Clock
from .fanout import CHANNEL, prove_delivery, subscribed

PAYLOAD = b"p" * 100
READ_BYTES = 1 << 16


class Stopwatch:
    """Publishes one message at a time and notes when each subscriber's socket has handed it over."""

    def __init__(self, publisher: Client, subscribers: list[Client]) -> None:
        self._publisher = publisher.socket
        self._sockets: dict[int, socket.socket] = {client.fileno(): client.socket for client in subscribers}
        self._received = dict.fromkeys(self._sockets, 0)
        self._size = len(wire.message(CHANNEL, PAYLOAD))
        self._buffer = bytearray(READ_BYTES)
        self._sent_ns: list[int] = []
        self.latencies_ns: list[int] = []

    def run(self, seconds: float) -> None:
        """Publishes for so many seconds and returns when the last delivery has arrived."""
        request = wire.publish(CHANNEL, PAYLOAD)
        reply = wire.integer(len(self._sockets))
        clock = time.perf_counter_ns
        publishing = self._publisher.fileno()
        with select.epoll() as epoll:
            for each in (self._publisher, *self._sockets.values()):
                each.setblocking(False)
                epoll.register(each, select.EPOLLIN)
            self._sent_ns.append(clock())
            deadline = self._sent_ns[0] + int(seconds * 1e9)
            self._publisher.send(request)
            answered = False
            while not answered or len(self.latencies_ns) < len(self._sent_ns) * len(self._sockets):
                events = epoll.poll(PATIENCE_S, 4096)
                if not events:
                    raise WrongAnswer(f"nothing arrived for {PATIENCE_S:.0f} s, though deliveries are missing")
                for number, _ in events:
                    if number != publishing:
                        self._take(number)
                        continue
                    got = self._publisher.recv(READ_BYTES)
                    if got != reply:
                        raise WrongAnswer(f"PUBLISH was answered {got!r}, expected {reply!r}")
                    now = clock()
                    answered = now >= deadline
                    if not answered:
                        self._sent_ns.append(now)
                        self._publisher.send(request)

    def _take(self, number: int) -> None:
        count = self._sockets[number].recv_into(self._buffer, READ_BYTES, socket.MSG_TRUNC)
        now = time.perf_counter_ns()
        if count == 0:
            raise WrongAnswer("the server closed a subscriber's connection")
        before = self._received[number]
        after = self._received[number] = before + count
        for index in range(before // self._size, after // self._size):
            self.latencies_ns.append(now - self._sent_ns[index])


class Unpipelined(Shape):
    """The rate, and the publish-to-deliver latency over all messages and subscribers."""

    def __init__(self, name: str, sentence: str, subscribers: int, p50_at_most: float) -> None:
        self.name = name
        self.sentence = sentence
        self.figures = (
            Figure("rate", "deliveries/s", target=Target(1.0)),
            Figure("p50", "µs", higher_is_better=False, target=Target(p50_at_most)),
            Figure("p99", "µs", higher_is_better=False, target=Target(1.1)),
        )
        self._subscribers = subscribers

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            subscribers = subscribed(server, stack, self._subscribers)
            publisher = stack.enter_context(server.connect())
            prove_delivery(publisher, subscribers, PAYLOAD)
            watch = Stopwatch(publisher, subscribers)
            with Clock(server) as clock:
                watch.run(effort.seconds)
        latencies = sorted(watch.latencies_ns)
        count = len(latencies)
        rate = delivery_reading(clock.tally(0, count), 1)
        return rate, Reading(latencies[count // 2] / 1e3), Reading(latencies[count * 99 // 100] / 1e3)


SHAPES: tuple[Shape, ...] = (
    Unpipelined("latency", "one subscriber, a publisher that waits for each reply", 1, 1.0),
    Unpipelined("fanout-100-unpipelined", "100 subscribers, a publisher that waits for each reply", 100, 1.1),
)
