"""A topic whose oldest entries are in blocks: how fast they are read again, and what sealing them costs who writes.

The sealing process is the server's child and has no other core than the server: XADD keeps what it keeps though the two
share one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from types import TracebackType

from .. import entries, wire
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
READ_BYTES = 1 << 20
SEALED_WITHIN_S = 120.0
LOOK_AGAIN_S = 0.01
SLICES = 4  # of a round, alternating
BACKLOG_ENTRIES = 200_000
BACKLOG_BYTES_A_SECOND = 100 << 20
"""More than is sealed."""
BACKLOG_SPARE_S = 0.25
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
                count = _until_sealed(client, topic)  # the latest entries are in no block
            pages = [_page(first) for first in range(0, count - PAGE + 1, PAGE)]
            server.settle()
            with Clock(server) as clock:
                _replay(client, topic, pages)
            if server.name == OURS and not _row_groups_read(client):
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


def _row_groups_read(client: Client) -> int:
    found = re.search(rb"cold_row_groups_read:(\d+)", client.ask(wire.command(b"INFO")))
    if found is None:
        raise WrongAnswer("INFO tells nothing of the cold store")
    return int(found[1])


def _until_sealed(client: Client, topic: bytes) -> int:
    """Waits until no block can be made of the topic any more; how many entries are in blocks then."""
    limit = time.monotonic() + SEALED_WITHIN_S
    while _hot_bytes(client, topic) >= BLOCK_BYTES:
        if time.monotonic() > limit:
            raise WrongAnswer(f"{_cold_entries(client, topic)} entries were sealed in {SEALED_WITHIN_S:.0f} s, not all")
        time.sleep(LOOK_AGAIN_S)
    return _cold_entries(client, topic)


def _cold_entries(client: Client, topic: bytes) -> int:
    return _told(client, topic)[b"cold-entries"]


def _hot_bytes(client: Client, topic: bytes) -> int:
    told = _told(client, topic)
    return told[b"bytes"] - told[b"cold-bytes"]


def _told(client: Client, topic: bytes) -> dict[bytes, int]:
    """The numbers of TOPIC.INFO."""
    client.send(wire.command(b"TOPIC.INFO", topic) + wire.command(b"PING"))
    got = b""
    while not got.endswith(b"+PONG\r\n"):
        part = client.socket.recv(READ_BYTES)
        if not part:
            raise WrongAnswer(f"TOPIC.INFO was answered {got!r} and the connection was closed")
        got += part
    if got.startswith(b"-"):
        raise WrongAnswer(f"TOPIC.INFO was answered {got!r}")
    return {name: int(number) for name, number in re.findall(rb"\r\n([a-z-]+)\r\n:(\d+)", got)}


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
        seconds = effort.seconds / SLICES
        works = (_pipelined, _unpipelined)
        with server.contestant.start(self.options) as without, _Backlog(server) as backlog:
            ratios: list[list[float]] = [[] for _ in works]
            for work in works:
                work(without, entries.new_topic(), seconds)
            for number in range(SLICES):
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

    def __init__(self, server: Server) -> None:
        self._server = server
        self._client = server.connect()
        self._topics: list[bytes] = []
        self._sealed = 0
        self._seconds = 0.0
        self._spare_s = BACKLOG_SPARE_S

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
        self._seal_from(BLOCK_BYTES)
        self._until_begun()
        topic = entries.new_topic()
        before, began = self._count(), time.perf_counter()
        rate = work(self._server, topic, seconds)
        ended, after, was_enough = time.perf_counter(), self._count(), bool(self._due_bytes())
        self._topics.append(topic)
        self._seal_from(NOTHING_TO_SEAL)
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
        limit = time.monotonic() + SEALED_WITHIN_S
        before = self._count()
        while self._count() == before:
            if time.monotonic() > limit:
                raise WrongAnswer(f"nothing was sealed in {SEALED_WITHIN_S:.0f} s")
            time.sleep(LOOK_AGAIN_S)

    def _seal_from(self, size_bytes: int) -> None:
        """How large a topic has to be that it is sealed."""
        self._client.call(wire.command(b"CONFIG", b"SET", b"cold-block-size", b"%d" % size_bytes), b"+OK\r\n")

    def _count(self) -> int:
        return sum(_cold_entries(self._client, topic) for topic in self._topics)

    def _due_bytes(self) -> int:
        sizes = (_hot_bytes(self._client, topic) for topic in self._topics)
        return sum(size for size in sizes if size >= BLOCK_BYTES)


SHAPES: tuple[Shape, ...] = (Replay(), Sealing())
