"""HTTP: streams beside the RESP fan-out of the same size, posts, a replay, and what a gateway that is idle costs."""

from __future__ import annotations

import select
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import repeat
from statistics import median

from .. import http, load, wire
from ..asking import Asker, Question, ask_in_turn
from ..client import PATIENCE_S, Client, WrongAnswer
from ..contestant import OURS, REDIS, Server
from ..entries import WINDOW, check_length
from ..load import Batch
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading, delivery_reading
from ..traffic import Appender, Clock, Publisher, Tally, alternate, drive
from .append import PERSISTENT
from .fanout import BATCHES_OWED, CHANNEL, prove_delivery, subscribed

STREAMS = 100
DEPTH = 64
PAYLOAD = b"p" * 100
CONNECTIONS = 50
ENTRIES = 1_000_000
QUICK_ENTRIES = 20_000
READ_BYTES = 1 << 20
SLICES = 4  # of a round, alternating
EVERYSEC = PERSISTENT + "everysec"


class Streams(Shape):
    """Deliveries a second by SSE, beside Redis's by RESP and, in the same round, beside our own by RESP."""

    own_options = http.ON
    figures = (
        Figure("rate", "deliveries/s", target=Target(0.5)),
        Figure("rate over the same server's RESP fan-out", "times", target=Target(0.5, of_ratio=False)),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        if server.name == REDIS:
            return _fanout(server, effort.seconds), Reading(1.0)
        resp = _fanout(server, effort.seconds / 2)
        server.settle()
        streamed = self._stream(server, effort.seconds)
        return streamed, Reading(streamed.value / resp.value)

    def _stream(self, server: Server, seconds: float) -> Reading:
        raise NotImplementedError


def _fanout(server: Server, seconds: float) -> Reading:
    size = len(wire.message(CHANNEL, PAYLOAD))
    with ExitStack() as stack:
        subscribers = subscribed(server, stack, STREAMS)
        client = stack.enter_context(server.connect())
        prove_delivery(client, subscribers, PAYLOAD)
        publisher = Publisher(client, load.same(CHANNEL, PAYLOAD, DEPTH, STREAMS, size * STREAMS))
        return delivery_reading(drive(server, [publisher], subscribers, seconds, _owed(size)), size)


def _owed(size: int) -> int:
    return STREAMS * BATCHES_OWED * DEPTH * size


class ChannelStreams(Streams):
    """As *fanout-100*, but each subscriber is a stream."""

    name = "sse-channel-100"
    sentence = f"{STREAMS} streams of one channel, 64-deep publisher; Redis: {STREAMS} subscribers"

    def _stream(self, server: Server, seconds: float) -> Reading:
        size = len(b"data: %b\n\n" % PAYLOAD)
        with ExitStack() as stack:
            streams = [
                stack.enter_context(http.Stream(server, b"/api/channels/" + CHANNEL)) for _ in range(STREAMS)
            ]
            client = stack.enter_context(server.connect())
            client.call(wire.publish(CHANNEL, PAYLOAD), wire.integer(STREAMS))
            http.prove(streams, b"data: %b\n\n" % PAYLOAD)
            publisher = Publisher(client, load.same(CHANNEL, PAYLOAD, DEPTH, STREAMS, size * STREAMS))
            return delivery_reading(drive(server, [publisher], streams, seconds, _owed(size)), size)


class EventStreams(Streams):
    """What is published is stored, too: each stream is one of the event bus."""

    name = "sse-events-100"
    sentence = f"{STREAMS} streams of the event bus, XADD to it, 64 deep; Redis: PUBLISH to {STREAMS} subscribers"

    def _stream(self, server: Server, seconds: float) -> Reading:
        size = http.event_bytes(PAYLOAD)
        with ExitStack() as stack:
            path = b"/api/events?last_event_id=latest"
            streams = [stack.enter_context(http.Stream(server, path)) for _ in range(STREAMS)]
            client = stack.enter_context(server.connect())
            client.ask(http.addition(PAYLOAD))
            http.prove(streams, b"\ndata: %b\n\n" % PAYLOAD)
            publisher = Appender(client, _additions(size * STREAMS))
            return delivery_reading(drive(server, [publisher], streams, seconds, _owed(size)), size)


def _additions(delivered_bytes: int) -> Iterator[Batch]:
    return repeat(Batch(http.addition(PAYLOAD) * DEPTH, b"", DEPTH, delivered_bytes * DEPTH))


class Posts(Shape):
    """Each connection posts its next event when the last one is stored; afterwards all of them must be there."""

    name = "post-50-everysec"
    sentence = f"POST /api/events of 100 bytes, {CONNECTIONS} keep-alive connections; fsync every second"
    contestants = (OURS,)
    options = EVERYSEC
    own_options = http.ON
    figures = (Figure("rate", "POST/s", target=Target(8_000, of_ratio=False)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        request = http.post(b"/api/events?type=" + http.TYPE, PAYLOAD)
        with ExitStack() as stack:
            counter = stack.enter_context(server.connect())
            before = int(counter.ask(wire.command(b"XLEN", http.TOPIC))[1:])
            clients = [stack.enter_context(server.connect_http()) for _ in range(CONNECTIONS)]
            question = Question(request, http.proven_post(clients[0], request), compared=False)
            tally = ask_in_turn(server, [Asker(client, repeat(question)) for client in clients], effort.seconds)
            check_length(counter, http.TOPIC, before + 1 + tally.commands)
            return (command_reading(tally),)


class Replay(Shape):
    """One stream from the first event to the last."""

    name = "sse-replay"
    sentence = f"one stream replays {ENTRIES:,} events of 100 bytes"
    contestants = (OURS,)
    options = EVERYSEC
    own_options = http.ON
    rounds_at_most = 3
    warms_up = False
    figures = (Figure("rate", "events/s", target=Target(150_000, of_ratio=False)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        count = QUICK_ENTRIES if effort.quick else ENTRIES
        with server.connect() as client:
            _fill(client, count)
        server.settle()
        with http.Stream(server, b"/api/events?last_event_id=latest") as first:
            del first  # what the first stream alone brings is not a replay's
        with Clock(server) as clock, http.Stream(server, b"/api/events") as stream:
            _drain(stream, count * http.event_bytes(PAYLOAD))
        return (delivery_reading(clock.tally(0, count), 1),)


def _fill(client: Client, count: int) -> None:
    batches = _additions(0)
    due = lines = 0
    while lines < wire.LINES_OF_AN_ID * count:
        while due < count and due - lines // wire.LINES_OF_AN_ID < WINDOW * DEPTH:
            depth = min(DEPTH, count - due)
            client.send(next(batches).wire if depth == DEPTH else http.addition(PAYLOAD) * depth)
            due += depth
        replies = client.socket.recv(READ_BYTES)
        if not replies or replies.startswith(b"-") or b"\n-" in replies:
            raise WrongAnswer(f"XADD was answered {replies[:200]!r}")
        lines += replies.count(b"\n")
    check_length(client, http.TOPIC, count)


def _drain(stream: http.Stream, due_bytes: int) -> None:
    buffer = bytearray(READ_BYTES)
    stream.socket.setblocking(False)
    limit = time.monotonic() + PATIENCE_S * 3
    with select.epoll() as epoll:
        epoll.register(stream, select.EPOLLIN)
        while due_bytes > 0:
            if not epoll.poll(PATIENCE_S) or time.monotonic() > limit:
                raise WrongAnswer(f"{due_bytes:,} bytes of a replay did not come")
            due_bytes -= stream.discard(buffer)
    if due_bytes:
        raise WrongAnswer(f"a replay had {-due_bytes:,} bytes too many")


class IdleGateway(Shape):
    """The same work for two of our servers in turns: one listens for HTTP, which nobody uses, and one does not."""

    name = "gateway-idle"
    sentence = "PUBLISH and fan-out with a gateway that nobody uses, over those without one"
    contestants = (OURS,)
    own_options = http.ON
    figures = (
        Figure("fan-out to 100", "times", target=Target(0.97, of_ratio=False)),
        Figure("publish, 50 connections, no pipeline", "times", target=Target(0.97, of_ratio=False)),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        seconds = effort.seconds / SLICES
        with server.contestant.start() as without:
            ratios: list[list[float]] = [[], []]
            for number in range(SLICES):
                pair = (server, without) if number % 2 else (without, server)
                for figure, work in enumerate((_fanout_rate, _publish_rate)):
                    rates = {each is server: work(each, seconds) for each in pair}
                    ratios[figure].append(rates[True] / rates[False])
            return tuple(Reading(median(each)) for each in ratios)


def _fanout_rate(server: Server, seconds: float) -> float:
    return _fanout(server, seconds).value


def _publish_rate(server: Server, seconds: float) -> float:
    with ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
        return _rate(alternate(server, clients, wire.publish(b"nobody", PAYLOAD), wire.integer(0).__eq__, seconds))


def _rate(tally: Tally) -> float:
    return tally.commands / tally.seconds


SHAPES: tuple[Shape, ...] = (ChannelStreams(), EventStreams(), Posts(), Replay(), IdleGateway())
