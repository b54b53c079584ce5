"""Connections that ask, read an answer that is known beforehand, and ask for the next thing."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence

from .client import PATIENCE_S, Client, WrongAnswer
from .contestant import Server
from .traffic import Clock, Tally

READ_BYTES = 1 << 20


class Question:
    """What is sent, and what must come back: these bytes, or only so many where they have been compared before."""

    __slots__ = ("answer", "answer_bytes", "wire")

    def __init__(self, wire: bytes, answer: bytes, *, compared: bool = True) -> None:
        self.wire = wire
        self.answer = answer if compared else b""
        self.answer_bytes = len(answer)


class Asker:
    """One connection, with one question under way."""

    __slots__ = ("_got", "_left", "_question", "questions", "socket")

    def __init__(self, client: Client, questions: Iterator[Question]) -> None:
        self.socket = client.socket
        self.questions = questions
        self._question = Question(b"", b"")
        self._left = 0
        self._got = b""

    def ask(self) -> None:
        """Asks the next question. A socket that does not take it at once is not a blocking one for that."""
        question = self._question = next(self.questions)
        self._left = question.answer_bytes
        self._got = b""
        self.socket.sendall(question.wire)

    def read(self, buffer: bytearray) -> bool:
        """Whether the answer is complete."""
        if not self._question.answer:
            count = self.socket.recv_into(buffer, READ_BYTES, socket.MSG_TRUNC)
        else:
            part = self.socket.recv(READ_BYTES)
            count = len(part)
            self._got = self._got + part if self._got else part
            if not self._question.answer.startswith(self._got):
                raise WrongAnswer(f"answered {self._got[:200]!r}, expected {self._question.answer[:200]!r}")
        self._left -= count
        if count == 0 or self._left < 0:
            raise WrongAnswer("the connection was closed, or an answer was longer than it must be")
        return not self._left


def ask_in_turn(
    server: Server, askers: Sequence[Asker], seconds: float, count: Callable[[], int] | None = None
) -> Tally:
    """Each asks and asks again for so many seconds. Counted are answers, or what `count` says."""
    by_number = {asker.socket.fileno(): asker for asker in askers}
    buffer = bytearray(READ_BYTES)
    answers = 0
    with select.epoll() as epoll, Clock(server) as clock:
        deadline = time.perf_counter() + seconds
        for number, asker in by_number.items():
            epoll.register(number, select.EPOLLIN)
            asker.ask()
        waiting = len(by_number)
        while waiting:
            events = epoll.poll(PATIENCE_S, len(by_number))
            if not events:
                raise WrongAnswer(f"nothing arrived for {PATIENCE_S:.0f} s, though answers are missing")
            asking = time.perf_counter() < deadline
            for number, _ in events:
                asker = by_number[number]
                if asker.read(buffer):
                    answers += 1
                    if asking:
                        asker.ask()
                    else:
                        waiting -= 1
    return clock.tally(count() if count is not None else answers, 0)
