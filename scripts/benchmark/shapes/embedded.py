"""Programs that use a folder, without a server: the same programs with redis-py and redis-server beside them."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import median

from ..client import WrongAnswer
from ..contestant import OURS, Server
from ..library import Program
from ..shape import Effort, Figure, Reading, Shape, Target

CHANNEL = "news"
PAYLOAD_BYTES = 100
RLITE_RATE = 2400
"""Publishes a second across two processes of rlite, the ancestor in C, as it was recorded; it is not run here."""
PAUSE_S = 0.0005
BUSY_SHARE, BUSY_PERIOD_S = 0.5, 0.01
PERSISTENT = "--appendonly yes --auto-aof-rewrite-percentage 0 --appendfsync everysec"
"""As a folder is, if nothing else is said."""


class TwoProcesses(Shape):
    """One program publishes from one thread, another one subscribes."""

    needs_server = False

    def publish(self, server: Server, seconds: float, pause_s: float) -> tuple[Reading, float, float]:
        """The rate, and the median and the 99th percentile of the latency in microseconds."""
        with ExitStack() as stack:
            subscriber = stack.enter_context(Program("subscriber", server.url, CHANNEL))
            subscriber.hear()
            publisher = stack.enter_context(Program("publisher", server.url, CHANNEL, seconds, pause_s, PAYLOAD_BYTES))
            publisher.hear()
            waited = publisher.waited_seconds() + subscriber.waited_seconds()
            publisher.go_on()
            said, heard = publisher.hear(), subscriber.hear()
            waited = publisher.waited_seconds() + subscriber.waited_seconds() - waited if server.name == OURS else 0.0
        if heard["received"] != said["sent"]:
            raise WrongAnswer(f"{said['sent']} messages were sent and {heard['received']} received")
        rate = Reading(said["sent"] / said["seconds"], waited=waited / said["seconds"])
        return rate, heard["p50"], heard["p99"]


class Rate(TwoProcesses):
    """As fast as it goes: the publisher waits for each reply, and for nothing else."""

    name = "embedded-publish"
    sentence = "redis-py's API, one publisher thread, one subscriber in another process; Redis: over loopback"
    figures = (
        Figure("rate", "publish/s", target=Target(5.0)),
        Figure("rate over rlite's recorded 2,400/s", "times", target=Target(15.0, of_ratio=False)),
        Figure("p50 at this rate", "µs", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        rate, p50, _ = self.publish(server, effort.seconds, 0.0)
        return rate, Reading(rate.value / RLITE_RATE), Reading(p50)


class BusyNeighbour(TwoProcesses):
    """Whoever sleeps is woken late where the cores have other work."""

    name = "embedded-publish-busy"
    sentence = "as embedded-publish, with a third process that keeps half a core busy"
    figures = (
        Figure("rate", "publish/s", target=Target(5.0)),
        Figure("p50 at this rate", "µs", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with Program("busy", BUSY_SHARE, BUSY_PERIOD_S) as neighbour:
            neighbour.hear()
            rate, p50, _ = self.publish(server, effort.seconds, 0.0)
            neighbour.end()
        return rate, Reading(p50)


class Latency(TwoProcesses):
    """A message now and then, the same for both: from before `publish` to after `get_message`."""

    name = "embedded-latency"
    sentence = f"as embedded-publish, with a pause of {PAUSE_S * 1e3:g} ms after each message"
    figures = (
        Figure("p50", "µs", higher_is_better=False, target=Target(1.0)),
        Figure("p99", "µs", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        rate, p50, p99 = self.publish(server, effort.seconds, PAUSE_S)
        return Reading(p50, waited=rate.waited), Reading(p99)


class Keys(Shape):
    """SET or GET, each answered before the next: from one thread, or from several that share a client."""

    needs_server = False
    options = PERSISTENT

    def __init__(self, command: str, threads: int) -> None:
        self._command, self._threads = command, threads
        self.name = f"embedded-{command}" if threads == 1 else f"embedded-{command}-{threads}"
        who = "one thread" if threads == 1 else f"{threads} threads of one program"
        self.sentence = f"redis-py's API, {command.upper()} from {who}; Redis: over loopback, appendfsync everysec"
        self.figures = (Figure("rate", f"{command.upper()}/s", target=Target(8.0)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        arguments = (server.url, self._command, effort.seconds, self._threads, PAYLOAD_BYTES)
        with Program("caller", *arguments) as program:
            program.hear()
            waited = program.waited_seconds()
            program.go_on()
            said = program.hear()
            waited = (program.waited_seconds() - waited) / said["seconds"] / self._threads
        return (Reading(said["calls"] / said["seconds"], waited=waited if server.name == OURS else 0.0),)


class SameProcess(Shape):
    """What is not read yet waits on disk, and is read and compared afterwards."""

    name = "embedded-same-process"
    sentence = "publisher and subscriber in one program, one thread; nothing may be lost"
    contestants = (OURS,)
    needs_server = False
    figures = (
        Figure("rate", "publish/s", target=Target(300_000, of_ratio=False)),
        Figure("reading it afterwards", "messages/s"),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        with Program("alone", server.folder / "alone", effort.seconds, PAYLOAD_BYTES) as program:
            program.hear()
            waited = program.waited_seconds()
            program.go_on()
            said = program.hear()
            waited = (program.waited_seconds() - waited) / (said["publishing"] + said["reading"])
        return Reading(said["sent"] / said["publishing"], waited=waited), Reading(said["sent"] / said["reading"])


class Crowd(Shape):
    """A message is stored once: what 100 subscribers add to it is a reference each, however long it is."""

    name = "embedded-crowd-100"
    sentence = "100 subscriber processes on one channel; 5,000 publishes all arrive, and what a payload costs the store"
    contestants = (OURS,)
    needs_server = False
    warms_up = False
    rounds_at_most = 1
    figures = (
        Figure("deliveries", "of those due", target=Target(1.0, of_ratio=False)),
        Figure("store, 100 bytes", "bytes/publish", higher_is_better=False),
        Figure("store, 10,000 bytes", "bytes/publish", higher_is_better=False),
        Figure("store, per byte of payload", "bytes", higher_is_better=False, target=Target(2.0, of_ratio=False)),
        Figure("time, 10,000 bytes over 100", "times", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        processes, stored, messages = (5, 20, 200) if effort.quick else (100, 200, 5000)
        folder = server.folder / "crowd"
        with ExitStack() as stack:
            crowd = stack.enter_context(Program("crowd", folder, CHANNEL, processes))
            crowd.hear()
            publisher = stack.enter_context(Program("addressing", folder, CHANNEL, processes, stored, messages))
            cost = publisher.hear()
            crowd.go_on()
            publisher.go_on()
            sent, received = publisher.hear()["sent"], crowd.hear()
        short, long = cost["short"], cost["long"]
        return (
            Reading(sum(received) / (sent * processes)),
            Reading(short["bytes"]),
            Reading(long["bytes"]),
            Reading((long["bytes"] - short["bytes"]) / cost["payload_bytes"]),
            Reading(long["seconds"] / short["seconds"]),
        )


class First(Shape):
    """What a program waits for before it has published its first message, in fresh processes."""

    name = "embedded-start"
    sentence = "a program's import of rlite_pubsub.Redis, beyond redis-py's own, then a new store and its first publish"
    contestants = (OURS,)
    needs_server = False
    warms_up = False
    figures = (
        Figure("import beyond redis-py's", "ms", higher_is_better=False, target=Target(30.0, of_ratio=False)),
        Figure("open and first publish", "ms", higher_is_better=False, target=Target(20.0, of_ratio=False)),
        Figure("import of redis-py", "ms", higher_is_better=False),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        beyond, publish, redis = [], [], []
        for number in range(1 if effort.quick else 7):
            alone = self._run("redis", server, number)
            ours = self._run("rlite_pubsub", server, number)
            beyond.append(ours["import"] - alone["import"])
            publish.append(ours["publish"])
            redis.append(alone["import"])
        return Reading(median(beyond)), Reading(median(publish)), Reading(median(redis))

    def _run(self, module: str, server: Server, number: int) -> dict[str, float]:
        with Program("first", server.folder / f"first-{number}", module) as program:
            said: dict[str, float] = program.hear()
            return said


SHAPES: tuple[Shape, ...] = (
    Rate(),
    BusyNeighbour(),
    Latency(),
    Keys("set", 1),
    Keys("get", 1),
    Keys("set", 50),
    Keys("get", 50),
    SameProcess(),
    Crowd(),
    First(),
)
