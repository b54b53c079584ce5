"""Reading a topic: its pages from first to last, and by a hundred readers who wait for what is new."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from .. import entries, wire
from ..asking import Asker, Question, ask_in_turn
from ..client import PATIENCE_S, Client, WrongAnswer
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading, delivery_reading
from ..traffic import Clock
from .append import PERSISTENT

ENTRIES = 100_000
QUICK_ENTRIES = 5_000
PAGE = 1000
CONNECTIONS = 10
READERS = 100
READ_BYTES = 4096


class Pages(Shape):
    """Each connection goes through the topic from page to page. The first pages are compared, the others counted."""

    name = "xrange-1000"
    sentence = f"XRANGE in pages of {PAGE:,} entries of 100 bytes, {CONNECTIONS} connections"
    options = PERSISTENT + "everysec"
    figures = (Figure("rate", "pages/s", target=Target(1.0)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic = entries.new_topic()
        count = QUICK_ENTRIES if effort.quick else ENTRIES
        with ExitStack() as stack:
            filler = stack.enter_context(server.connect())
            entries.fill_numbered(filler, topic, count)
            entries.check_length(filler, topic, count)
            server.settle()
            pages = [_page(topic, first) for first in range(0, count, PAGE)]
            for request, answer in pages:
                filler.call(request, answer)
            askers = [
                Asker(stack.enter_context(server.connect()), _from(pages, number * len(pages) // CONNECTIONS))
                for number in range(CONNECTIONS)
            ]
            return (command_reading(ask_in_turn(server, askers, effort.seconds)),)


def _page(topic: bytes, first: int) -> tuple[bytes, bytes]:
    request = wire.command(b"XRANGE", topic, entries.numbered_id(first), b"+", b"COUNT", b"%d" % PAGE)
    return request, b"*%d\r\n" % PAGE + b"".join([entries.numbered(first + place) for place in range(PAGE)])


def _from(pages: Sequence[tuple[bytes, bytes]], place: int) -> Iterator[Question]:
    questions = [Question(request, answer, compared=False) for request, answer in pages]
    while True:
        yield questions[place % len(questions)]
        place += 1


class Tail(Shape):
    """A hundred readers wait for the next entry, get it, and wait for the one after it; then it is added."""

    name = "xread-block-100"
    sentence = f"XREAD BLOCK by {READERS} readers of one topic, an entry as soon as all have the last one"
    options = PERSISTENT + "everysec"
    figures = (Figure("rate", "deliveries/s", target=Target(1.0)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic = entries.new_topic()
        with ExitStack() as stack:
            readers = [stack.enter_context(server.connect()) for _ in range(READERS)]
            writer = stack.enter_context(server.connect())
            tail = _Tail(topic, writer, readers)
            with Clock(server) as clock:
                added = tail.run(effort.seconds)
            entries.check_length(stack.enter_context(server.connect()), topic, added)
            return (delivery_reading(clock.tally(added, added * READERS), 1),)


class _Tail:
    """The writer, and the readers who follow."""

    def __init__(self, topic: bytes, writer: Client, readers: Sequence[Client]) -> None:
        self._topic = topic
        self._writer = writer.socket
        self._readers: dict[int, socket.socket] = {reader.fileno(): reader.socket for reader in readers}

    def run(self, seconds: float) -> int:
        """How many entries were added; each reader got each of them once, in order."""
        with select.epoll() as epoll:
            for number in (*self._readers, self._writer.fileno()):
                epoll.register(number, select.EPOLLIN)
            for reader in self._readers.values():
                reader.send(self._wish(b"0-0"))
            deadline = time.perf_counter() + seconds
            added = 0
            while time.perf_counter() < deadline:
                self._add(epoll, added)
                added += 1
            return added

    def _add(self, epoll: select.epoll, number: int) -> None:
        entry_id = entries.numbered_id(number)
        acknowledged = wire.bulk(entry_id)
        delivered = b"*1\r\n*2\r\n" + wire.bulk(self._topic) + b"*1\r\n" + entries.numbered(number)
        wish = self._wish(entry_id)
        payload = entries.payloads()[number % entries.DIFFERENT]
        self._writer.send(entries.addition(self._topic, entry_id, payload))
        due = set(self._readers)
        is_acknowledged = False
        while due or not is_acknowledged:
            events = epoll.poll(PATIENCE_S, len(self._readers) + 1)
            if not events:
                raise WrongAnswer(f"{len(due)} readers did not get the entry")
            for ready, _ in events:
                reader = self._readers.get(ready)
                if reader is None:
                    is_acknowledged = _is(self._writer.recv(READ_BYTES), acknowledged)
                elif ready in due and _is(reader.recv(READ_BYTES), delivered):
                    due.remove(ready)
                    reader.send(wish)
                else:
                    raise WrongAnswer("a reader got an entry twice")

    def _wish(self, after: bytes) -> bytes:
        return wire.command(b"XREAD", b"BLOCK", b"0", b"STREAMS", self._topic, after)


def _is(got: bytes, expected: bytes) -> bool:
    if got != expected:
        raise WrongAnswer(f"answered {got[:200]!r}, expected {expected[:200]!r}")
    return True


SHAPES: tuple[Shape, ...] = (Pages(), Tail())
