"""Links between two servers: what goes over one of them a second, what each process on the way spends on it, and how
much later a message arrives.

Publisher and subscriber are the generator, at both ends. With both servers and their processes for links that is five
or six programs; on few cores the sum of what they spend bounds the rate.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import NamedTuple

from .. import beside, entries, load, process, wire
from ..client import PATIENCE_S, Client, WrongAnswer
from ..contestant import OURS, Server, redis_contestant
from ..shape import Effort, Figure, NotHere, Reading, Shape, Target
from ..traffic import Appender, Publisher, Tally, alternate, drive

LINK = b"there"
LINKS = b"rlite_pubsub.links.process"
PAYLOAD = b"p" * 100
DEPTH = 64
BYTES_OWED = 4 << 20
"""Publishing pauses while so much is under way: a link drops what it cannot take."""
QUIET_S = 0.3
ENTRIES_AT_ONCE = 512
BACKLOG_PER_S = 200_000
LOOK_S = 0.002
MOST_LATE_US = 1000.0
PAUSE_S = 0.002
CONNECTIONS = 50
PLURALS = {"message": "messages", "entry": "entries"}


class Costs(NamedTuple):
    """CPU seconds so far."""

    links: float
    near: float
    far: float
    generator: float


class Chain:
    """Both ends of a link, of which the first one has it."""

    def __init__(self, near: Server, far: Server) -> None:
        self.near, self.far = near, far

    def cpu_seconds(self) -> float:
        return self.near.cpu_seconds() + self.far.cpu_seconds()

    def waited_seconds(self) -> float:
        return self.near.waited_seconds() + self.far.waited_seconds()

    def settle(self) -> None:
        self.near.settle()
        self.far.settle()

    def link(self, *words: bytes) -> None:
        """Creates the link, and waits until it is up."""
        url = b"redis://127.0.0.1:%d" % self.far.port
        with self.near.connect() as client:
            client.call(wire.command(b"LINK", b"CREATE", LINK, url, *words), b"+OK\r\n")
            self.await_up(client)

    def await_up(self, client: Client) -> None:
        limit = time.monotonic() + PATIENCE_S
        while time.monotonic() < limit:
            client.send(wire.command(b"LINK", b"INFO", LINK))
            time.sleep(LOOK_S * 10)
            if b"\r\nup\r\n" in client.socket.recv(1 << 16):
                return
        raise WrongAnswer("the link does not come up")

    def costs(self) -> Costs:
        """Of each part; a process with links belongs to no server."""
        links = near = far = 0.0
        for server in (self.near, self.far):
            for pid in process.family(server.pid):
                spent = process.own_cpu_seconds(pid)
                if _is_links(pid):
                    links += spent
                elif server is self.near:
                    near += spent
                else:
                    far += spent
        times = os.times()
        return Costs(links, near, far, times.user + times.system)


def _is_links(pid: int) -> bool:
    try:
        return LINKS in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _far_end(server: Server, stack: ExitStack, is_redis: bool) -> Server:
    """The other side: Redis, or another one of ours."""
    if not is_redis:
        return stack.enter_context(server.contestant.start())
    redis = redis_contestant()
    if redis is None:
        raise NotHere("there is no redis-server")
    return stack.enter_context(redis.start())


class _Linked(Shape):
    contestants = (OURS,)
    warms_up = False
    unit: str

    def __init__(self, name: str, sentence: str, unit: str, at_least: float, is_redis: bool) -> None:
        self.name = name
        self.sentence = sentence
        self.is_redis = is_redis
        costs = ("links", "near server", "far server", "generator")
        self.figures = (
            Figure("rate", f"{PLURALS[unit]}/s", target=Target(at_least, of_ratio=False)),
            *(Figure(f"CPU, {part}", f"µs/{unit}", higher_is_better=False) for part in costs),
        )

    @staticmethod
    def readings(count: int, seconds: float, before: Costs, after: Costs) -> tuple[Reading, ...]:
        spent = [(late - early) / count * 1e6 for early, late in zip(before, after, strict=True)]
        return Reading(count / seconds, sum(spent)), *map(Reading, spent)


class Messages(_Linked):
    """A subscriber at the far end, publishers at the near one, each with a channel of its own."""

    def __init__(self, name: str, sentence: str, connections: int, is_redis: bool = False) -> None:
        super().__init__(name, sentence, "message", 100_000, is_redis)
        self._connections = connections

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            chain = Chain(server, _far_end(server, stack, self.is_redis))
            chain.link(b"CHANNELS", b"channel:*")
            channels = [b"channel:%02d" % number for number in range(self._connections)]
            subscriber = stack.enter_context(chain.far.connect())
            subscriber.subscribe(*channels)
            open_way(chain.near, subscriber, channels[0])
            size = len(wire.message(channels[0], PAYLOAD))
            publishers = [
                Publisher(stack.enter_context(server.connect()), load.same(channel, PAYLOAD, DEPTH, 1, size))
                for channel in channels
            ]
            chain.settle()
            drive(chain, publishers, (subscriber,), effort.seconds * 0.3, BYTES_OWED)  # type: ignore[arg-type]
            before = chain.costs()
            tally = drive(chain, publishers, (subscriber,), effort.seconds, BYTES_OWED)  # type: ignore[arg-type]
            return self.readings(tally.commands, tally.seconds, before, chain.costs())


def open_way(near: Server, subscriber: Client, channel: bytes) -> None:
    """Publishes until it is heard at the far end, and then waits until nothing more comes."""
    limit = time.monotonic() + PATIENCE_S
    with near.connect() as publisher, select.epoll() as epoll:
        epoll.register(subscriber.fileno(), select.EPOLLIN)
        is_heard = False
        while time.monotonic() < limit:
            if not is_heard:
                publisher.ask(wire.publish(channel, b"begin"))
            if epoll.poll(QUIET_S):
                subscriber.socket.recv(1 << 16)
                is_heard = True
            elif is_heard:
                return
    raise WrongAnswer("the link brings nothing")


class Entries(_Linked):
    """Entries that are appended in pipelines while the link brings them over: until all are there."""

    def __init__(self, name: str, sentence: str, direction: bytes, is_redis: bool = False) -> None:
        super().__init__(name, sentence, "entry", 200_000, is_redis)
        self._direction = direction

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            chain = Chain(server, _far_end(server, stack, self.is_redis))
            topic = entries.new_topic()
            chain.link(b"TOPICS", topic, b"DIRECTION", self._direction)
            ends = (chain.near, chain.far) if self._direction == b"out" else (chain.far, chain.near)
            source, target = (stack.enter_context(end.connect()) for end in ends)
            source.ask(entries.addition(topic, b"*", PAYLOAD))
            self._await(target, topic, 1)
            return self.carry(chain, stack, topic, source, target, effort)

    def carry(
        self, chain: Chain, stack: ExitStack, topic: bytes, source: Client, target: Client, effort: Effort
    ) -> tuple[Reading, ...]:
        ends = (chain.near, chain.far) if self._direction == b"out" else (chain.far, chain.near)
        appender = Appender(stack.enter_context(ends[0].connect()), entries.batches(topic, ENTRIES_AT_ONCE))
        chain.settle()
        before, began = chain.costs(), time.perf_counter()
        tally = drive(chain, (appender,), (), effort.seconds)  # type: ignore[arg-type]
        self._await(target, topic, tally.commands + 1)
        return self.readings(tally.commands, time.perf_counter() - began, before, chain.costs())

    @staticmethod
    def _await(target: Client, topic: bytes, count: int) -> None:
        limit = time.monotonic() + PATIENCE_S
        while (found := int(target.ask(wire.command(b"XLEN", topic))[1:])) < count:
            if time.monotonic() > limit:
                raise WrongAnswer(f"{found} of {count} entries have arrived")
            time.sleep(LOOK_S)
        if found != count:
            raise WrongAnswer(f"{found} entries have arrived, not {count}")


class Backlog(Entries):
    """What waited while the link was paused is brought over."""

    def carry(
        self, chain: Chain, stack: ExitStack, topic: bytes, source: Client, target: Client, effort: Effort
    ) -> tuple[Reading, ...]:
        count = int(BACKLOG_PER_S * effort.seconds)
        with chain.near.connect() as client:
            client.call(wire.command(b"LINK", b"PAUSE", LINK), b"+OK\r\n")
            source.ask(wire.command(b"DEL", b"nothing"))
            entries.fill(source, topic + b"-filled", count)
            source.ask(wire.command(b"DEL", topic))
            source.ask(wire.command(b"RENAME", topic + b"-filled", topic))
            target.ask(wire.command(b"DEL", topic, b"__links__:{%b}" % topic))
            chain.settle()
            before, began = chain.costs(), time.perf_counter()
            client.call(wire.command(b"LINK", b"RESUME", LINK), b"+OK\r\n")
            self._await(target, topic, count)
            return self.readings(count, time.perf_counter() - began, before, chain.costs())


class Latency(Shape):
    """One message at a time, in turns to a subscriber at the near end, and to one behind an idle link."""

    name = "link-latency"
    sentence = f"one message after a pause of {PAUSE_S * 1e3:g} ms: how much later it arrives behind an idle link"
    contestants = (OURS,)
    warms_up = False
    figures = (
        Figure("later, p50", "µs", higher_is_better=False, target=Target(MOST_LATE_US, of_ratio=False)),
        Figure("p50 without a link", "µs", higher_is_better=False),
        Figure("p50 behind the link", "µs", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            chain = Chain(server, _far_end(server, stack, is_redis=False))
            chain.link(b"CHANNELS", b"channel")
            far, near = (stack.enter_context(each.connect()) for each in (chain.far, chain.near))
            far.subscribe(b"channel")
            open_way(server, far, b"channel")
            near.subscribe(b"unlinked")
            publisher = stack.enter_context(server.connect())
            took: dict[bytes, list[float]] = {b"channel": [], b"unlinked": []}
            end = time.perf_counter() + effort.seconds
            while time.perf_counter() < end:
                for subscriber, channel in ((near, b"unlinked"), (far, b"channel")):
                    time.sleep(PAUSE_S)
                    began = time.perf_counter()
                    publisher.send(wire.publish(channel, PAYLOAD))
                    subscriber.expect(wire.message(channel, PAYLOAD))
                    took[channel].append(time.perf_counter() - began)
                    publisher.expect(wire.integer(1))
            here, there = (median(took[channel]) * 1e6 for channel in (b"unlinked", b"channel"))
            return Reading(there - here), Reading(here), Reading(there)


class Idle(Shape):
    """The same work beside a link that brings nothing, and without one."""

    name = "link-idle"
    sentence = "PUBLISH of 100 bytes, 50 connections, no pipeline: with an idle link over without a link, CPU"
    contestants = (OURS,)
    warms_up = False
    figures = (
        Figure("CPU of the server", "times", higher_is_better=False, target=Target(1.03, of_ratio=False)),
        Figure("CPU, links at both ends, share of a core", "%", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with ExitStack() as stack:
            bare = stack.enter_context(server.contestant.start())
            chain = Chain(server, _far_end(server, stack, is_redis=False))
            chain.link(b"CHANNELS", b"other:*", b"TOPICS", b"other:*")
            links, began = -chain.costs().links, time.perf_counter()
            found = beside.compare(bare, server, _publish, effort.seconds)
            links += chain.costs().links
            share = links / (time.perf_counter() - began) * 100
        return Reading(found.times), Reading(share)


def _publish(server: Server, seconds: float) -> Tally:
    with ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
        return alternate(server, clients, wire.publish(b"channel", PAYLOAD), wire.integer(0).__eq__, seconds)


SHAPES: tuple[Shape, ...] = (
    Messages("link-messages", "PUBLISH over a link to another store, 64-deep pipelines, one channel", 1),
    Messages("link-messages-50", "the same, 50 connections with a channel each", CONNECTIONS),
    Messages("link-messages-redis", "PUBLISH over a link to Redis, 64-deep pipelines, one channel", 1, is_redis=True),
    Entries("link-entries-out", "XADD, 512-deep pipelines, over a link to another store", b"out"),
    Entries("link-entries-in", "the same, appended at the other store", b"in"),
    Entries("link-entries-out-redis", "XADD, 512-deep pipelines, over a link to Redis", b"out", is_redis=True),
    Entries("link-entries-in-redis", "the same, appended at Redis", b"in", is_redis=True),
    Backlog("link-backlog-out", "entries that waited, over a link to another store", b"out"),
    Backlog("link-backlog-in", "entries that waited at the other store", b"in"),
    Backlog("link-backlog-out-redis", "entries that waited, over a link to Redis", b"out", is_redis=True),
    Backlog("link-backlog-in-redis", "entries that waited at Redis", b"in", is_redis=True),
    Latency(),
    Idle(),
)
