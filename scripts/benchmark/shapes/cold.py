"""A topic whose oldest entries are in blocks: how fast they are read again, and what sealing them costs who writes.

The sealing process is the server's child and has no other core than the server: XADD keeps what it keeps though the two
share one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from types import TracebackType

from .. import cold_topics, entries, wire
from ..client import Client, WrongAnswer
from ..contestant import OURS, Server
from ..shape import Effort, Figure, Reading, Shape, Target, delivery_reading
from ..traffic import Appender, Clock, alternate, drive
from .append import CONNECTIONS, DEPTH, PERSISTENT

EVERYSEC = PERSISTENT + "everysec"
BLOCK_BYTES = 8 << 20
COLD = f"--cold-store local --cold-block-size {BLOCK_BYTES}"
ENTRIES = 1_000_000
QUICK_ENTRIES = 100_000
PAGE = 1000
PAGES_UNDER_WAY = 8
SLICES, QUICK_SLICES = 4, 1  # of a round, alternating
BACKLOG_ENTRIES = 200_000
BACKLOG_BYTES_A_SECOND = 100 << 20
"""More than is sealed."""
BACKLOG_SPARE_S, QUICK_SPARE_S = 0.25, 0.05
MOST_SPARE_S = 4.0
NOTHING_TO_SEAL = 2_000_000_000


class Replay(Shape):
    """Redis's come from its memory; ours come from files, which is proved, and each of their pages is compared."""

    name = "cold-replay"
    sentence = f"{ENTRIES:,} entries of 100 bytes from blocks: XRANGE COUNT {PAGE}, {PAGES_UNDER_WAY} of them under way"
    options = EVERYSEC
    own_options = COLD
    rounds_at_most = 3
    warms_up = False
    figures = (Figure("rate", "entries/s", target=Target(300_000, of_ratio=False)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic = entries.new_topic()
        count = QUICK_ENTRIES if effort.quick else ENTRIES
        with server.connect() as client:
            entries.fill_numbered(client, topic, count)
            entries.check_length(client, topic, count)
            if server.name == OURS:
                count = cold_topics.until_sealed(client, topic, BLOCK_BYTES)  # the latest entries are in no block
            pages = [_page(first) for first in range(0, count - PAGE + 1, PAGE)]
            server.settle()
            with Clock(server) as clock:
                _replay(client, topic, pages)
            if server.name == OURS and not cold_topics.row_groups_read(client):
                raise WrongAnswer("nothing was read from the cold store")
        return (delivery_reading(clock.tally(0, len(pages) * PAGE), 1),)


def _page(first: int) -> bytes:
    return b"*%d\r\n" % PAGE + b"".join([entries.numbered(first + place) for place in range(PAGE)])


def _replay(client: Client, topic: bytes, pages: list[bytes]) -> None:
    """Asks for the next page but some while it reads one."""
    requests = [
        wire.command(b"XRANGE", topic, entries.numbered_id(number * PAGE), b"+", b"COUNT", b"%d" % PAGE)
        for number in range(len(pages))
    ]
    client.send(b"".join(requests[:PAGES_UNDER_WAY]))
    for number, page in enumerate(pages):
        if number + PAGES_UNDER_WAY < len(requests):
            client.send(requests[number + PAGES_UNDER_WAY])
        got = bytearray(len(page))
        rest = memoryview(got)
        while rest:
            size = client.socket.recv_into(rest)
            if not size:
                raise WrongAnswer("the server closed the connection of a replay")
            rest = rest[size:]
        if got != page:
            raise WrongAnswer(f"page {number} is {bytes(got[:100])!r}…, expected {page[:100]!r}…")


class Sealing(Shape):
    """The same work for two of our servers in turns: one seals all the while, and one has no cold store."""

    name = "sealing"
    sentence = "XADD of 100 bytes while the sealing process works, over the same without a cold store"
    contestants = (OURS,)
    options = EVERYSEC
    own_options = COLD
    warms_up = False
    figures = (
        Figure(f"{DEPTH}-deep pipelines, {CONNECTIONS} connections", "times", target=Target(0.8, of_ratio=False)),
        Figure(f"{CONNECTIONS} connections, no pipeline", "times", target=Target(0.8, of_ratio=False)),
        Figure("sealed meanwhile", "entries/s"),
    )

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        slices = QUICK_SLICES if effort.quick else SLICES
        seconds = effort.seconds / slices
        works = (_pipelined, _unpipelined)
        spare_s = QUICK_SPARE_S if effort.quick else BACKLOG_SPARE_S
        with server.contestant.start(self.options) as without, _Backlog(server, spare_s) as backlog:
            ratios: list[list[float]] = [[] for _ in works]
            for work in works:
                work(without, entries.new_topic(), seconds)
            for number in range(slices):
                for figure, work in enumerate(works):
                    beside = None if number % 2 else work(without, entries.new_topic(), seconds)
                    while_sealing = backlog.sealed_while(work, seconds)
                    beside = beside or work(without, entries.new_topic(), seconds)
                    ratios[figure].append(while_sealing / beside)
            return *(Reading(median(each)) for each in ratios), Reading(backlog.rate)


Work = Callable[[Server, bytes, float], float]
"""On a topic, for so many seconds; how many entries were added in each."""


def _pipelined(server: Server, topic: bytes, seconds: float) -> float:
    with ExitStack() as stack:
        batches = (entries.batches(topic, DEPTH) for _ in range(CONNECTIONS))
        appenders = [Appender(stack.enter_context(server.connect()), each) for each in batches]
        tally = drive(server, appenders, (), seconds)
        entries.check_length(stack.enter_context(server.connect()), topic, tally.commands)
        return tally.commands / tally.seconds


def _unpipelined(server: Server, topic: bytes, seconds: float) -> float:
    request = entries.addition(topic, b"*", entries.payloads()[0])
    with ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(CONNECTIONS)]
        tally = alternate(server, clients, request, wire.is_id, seconds)
        entries.check_length(stack.enter_context(server.connect()), topic, tally.commands)
        return tally.commands / tally.seconds


class _Backlog:
    """Topics of which blocks are made while it is measured what that costs, and at no other time."""

    def __init__(self, server: Server, spare_s: float) -> None:
        self._server = server
        self._client = server.connect()
        self._topics: list[bytes] = []
        self._sealed = 0
        self._seconds = 0.0
        self._spare_s = spare_s

    def __enter__(self) -> _Backlog:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    @property
    def rate(self) -> float:
        """Entries that were sealed in a second in which others were added."""
        return self._sealed / self._seconds

    def sealed_while(self, work: Work, seconds: float) -> float:
        """What the work comes to, while blocks are made from its beginning to its end."""
        while (rate := self._attempt(work, seconds)) is None:
            self._spare_s *= 2
            if self._spare_s > MOST_SPARE_S:
                raise WrongAnswer("all was sealed before the work was done")
        return rate

    def _attempt(self, work: Work, seconds: float) -> float | None:
        """None: all was sealed before the work was done."""
        self._grow(int((seconds + self._spare_s) * BACKLOG_BYTES_A_SECOND))
        cold_topics.seal_from(self._client, BLOCK_BYTES)
        self._until_begun()
        topic = entries.new_topic()
        before, began = self._count(), time.perf_counter()
        rate = work(self._server, topic, seconds)
        ended, after, was_enough = time.perf_counter(), self._count(), bool(self._due_bytes())
        self._topics.append(topic)
        cold_topics.seal_from(self._client, NOTHING_TO_SEAL)
        self._server.settle()
        if not was_enough:
            return None
        self._seconds += ended - began
        self._sealed += after - before
        return rate

    def _grow(self, size_bytes: int) -> None:
        while self._due_bytes() < size_bytes:
            self._topics.append(entries.new_topic())
            entries.fill(self._client, self._topics[-1], BACKLOG_ENTRIES)

    def _until_begun(self) -> None:
        limit = time.monotonic() + cold_topics.SEALED_WITHIN_S
        before = self._count()
        while self._count() == before:
            if time.monotonic() > limit:
                raise WrongAnswer(f"nothing was sealed in {cold_topics.SEALED_WITHIN_S:.0f} s")
            time.sleep(cold_topics.LOOK_AGAIN_S)

    def _count(self) -> int:
        return sum(cold_topics.cold_entries(self._client, topic) for topic in self._topics)

    def _due_bytes(self) -> int:
        sizes = (cold_topics.hot_bytes(self._client, topic) for topic in self._topics)
        return sum(size for size in sizes if size >= BLOCK_BYTES)


SHAPES: tuple[Shape, ...] = (Replay(), Sealing())
