"""Workers of one group: each takes a hundred entries, acknowledges them, takes the next hundred."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import repeat

from .. import entries, wire
from ..asking import READ_BYTES, Asker, Question, ask_in_turn
from ..client import Client, WrongAnswer
from ..contestant import Server
from ..shape import Effort, Figure, Reading, Shape, Target, command_reading
from .append import PERSISTENT

ENTRIES = 100_000
QUICK_ENTRIES = 2_000
PAGE = 100
WORKERS = 10
GROUPS = 200
"""One after the other: where all entries of the topic are delivered, the workers begin anew as those of the next."""
NOTHING = b"*-1\r\n"
ACKNOWLEDGED = wire.integer(PAGE)


class Work(Shape):
    """Entries a second, taken and acknowledged; no entry twice, and nothing is pending at the end."""

    name = "xreadgroup-100-xack-100"
    sentence = f"XREADGROUP COUNT {PAGE}, then XACK of these {PAGE}; {WORKERS} consumers of one group"
    options = PERSISTENT + "everysec"
    figures = (Figure("rate", "entries/s", target=Target(0.6)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        topic = entries.new_topic()
        count = QUICK_ENTRIES if effort.quick else ENTRIES
        with ExitStack() as stack:
            filler = stack.enter_context(server.connect())
            entries.fill_numbered(filler, topic, count)
            for number in range(GROUPS):
                filler.call(wire.command(b"XGROUP", b"CREATE", topic, _group(number), b"0"), b"+OK\r\n")
            work = _Pages(topic, count)
            workers = [Worker(stack.enter_context(server.connect()), b"worker-%d" % n, work) for n in range(WORKERS)]
            server.settle()
            tally = ask_in_turn(server, workers, effort.seconds, lambda: sum(worker.done for worker in workers))
            used = 1 + max(worker.group for worker in workers)
            for number in range(used):
                filler.call(wire.command(b"XPENDING", topic, _group(number)), b"*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n")
            if used > 1 and sum(worker.done for worker in workers) < count:
                raise WrongAnswer("a group got to its end with entries that were not delivered")
            return (command_reading(tally),)


def _group(number: int) -> bytes:
    return b"group-%03d" % number


class _Pages:
    """What the workers get, and what they answer, by the first id of a page."""

    def __init__(self, topic: bytes, count: int) -> None:
        self.topic = topic
        self.head = b"*1\r\n*2\r\n" + wire.bulk(topic) + b"*%d\r\n" % PAGE
        self._id_at = len(self.head) + len(b"*2\r\n")
        self._id_bytes = len(wire.bulk(entries.numbered_id(0)))
        self._pages: dict[bytes, tuple[bytes, bytes]] = {}
        for first in range(0, count, PAGE):
            numbers = range(first, first + PAGE)
            page = self.head + b"".join(map(entries.numbered, numbers))
            ids = b"".join([wire.bulk(entries.numbered_id(number)) for number in numbers])
            self._pages[self._first_id(page)] = page, ids
        self.page_bytes = len(page)

    def _first_id(self, page: bytes) -> bytes:
        return page[self._id_at : self._id_at + self._id_bytes]

    def ids_of(self, page: bytes) -> bytes:
        """The ids of a page that is as it must be, as XACK takes them."""
        expected, ids = self._pages.get(self._first_id(page), (b"", b""))
        if page != expected:
            raise WrongAnswer(f"XREADGROUP was answered {page[:200]!r}: not a page of the topic")
        return ids


class Worker(Asker):
    """Asks for a page; it is answered once the page is acknowledged."""

    __slots__ = ("_acknowledging", "_head", "_pages", "_question_of", "done", "group")

    def __init__(self, client: Client, name: bytes, pages: _Pages) -> None:
        self._pages = pages
        self._question_of = [_question(pages, number, name) for number in range(GROUPS)]
        self._head = b"*%d\r\n" % (3 + PAGE) + wire.bulk(b"XACK") + wire.bulk(pages.topic)
        self._acknowledging = False
        self.group = 0
        self.done = 0  # entries
        super().__init__(client, repeat(self._question_of[0]))

    def read(self, buffer: bytearray) -> bool:
        got = self._got = self._got + self.socket.recv(READ_BYTES)
        if self._acknowledging:
            if got != ACKNOWLEDGED:
                raise WrongAnswer(f"XACK was answered {got[:200]!r}")
            self._acknowledging = False
            self.done += PAGE
            return True
        if got == NOTHING:
            self.group += 1
            self.questions = repeat(self._question_of[self.group])
            self.ask()
        elif len(got) >= self._pages.page_bytes:
            self._got = b""
            self._acknowledging = True
            self.socket.sendall(self._head + wire.bulk(_group(self.group)) + self._pages.ids_of(got))
        elif not got.startswith(self._pages.head[: len(got)]) and not self._pages.head.startswith(got):
            raise WrongAnswer(f"XREADGROUP was answered {got[:200]!r}")
        return False


def _question(pages: _Pages, group: int, consumer: bytes) -> Question:
    words = (b"GROUP", _group(group), consumer, b"COUNT", b"%d" % PAGE, b"STREAMS", pages.topic, b">")
    return Question(wire.command(b"XREADGROUP", *words), b"")


SHAPES: tuple[Shape, ...] = (Work(),)
