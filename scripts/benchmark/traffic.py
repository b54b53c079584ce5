"""The loop that loads a server: publishers with one batch each under way, subscribers whose bytes are counted.

A subscriber's bytes are dropped inside the kernel (MSG_TRUNC), for copying them would cost the generator more than
sending them costs the server. A publisher pauses while subscribers are owed more than a bound, so that no server's
output limit is what is measured. The clock stops when the last reply and the last delivery have arrived.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from types import TracebackType
from typing import Protocol

from . import process, wire
from .client import PATIENCE_S, Client, WrongAnswer
from .contestant import Server
from .load import Batch

READ_BYTES = 1 << 20
READ_BYTES_OF_ONE = 4096
EVENTS_AT_ONCE = 4096


@dataclass(frozen=True)
class Tally:
    """What was done, how long it took, the server's CPU time for it, and how long others had the cores."""

    commands: int
    delivered_bytes: int
    seconds: float
    cpu_seconds: float
    waited_seconds: float


class Clock:
    """Times what happens inside, on the wall and on the server's CPU, without garbage collection between."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._cpu_seconds = self._waited_seconds = self._seconds = 0.0

    def __enter__(self) -> Clock:
        gc.collect()
        gc.disable()
        self._waited_seconds = self._waited()
        self._cpu_seconds = self._server.cpu_seconds()
        self._seconds = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        gc.enable()
        if error is None:
            self._seconds = time.perf_counter() - self._seconds
            self._cpu_seconds = self._server.cpu_seconds() - self._cpu_seconds
            self._waited_seconds = self._waited() - self._waited_seconds

    def tally(self, commands: int, delivered_bytes: int) -> Tally:
        return Tally(commands, delivered_bytes, self._seconds, self._cpu_seconds, self._waited_seconds)

    def _waited(self) -> float:
        return self._server.waited_seconds() + process.waited_seconds(os.getpid())


class Receiver(Protocol):
    """A subscriber's connection."""

    socket: socket.socket

    def fileno(self) -> int: ...

    def discard(self, buffer: bytearray) -> int:
        """Drop what has arrived; how many of the bytes that are owed that was."""
        ...


class Publisher:
    """A connection with one batch under way: what it is still to send of it, and the replies it waits for.

    One batch, and not several: more would load the server no better from ten subscribers on, but the sizes in which it
    then happens to read them make two runs of one program differ by a fifth.
    """

    def __init__(self, client: Client, batches: Iterator[Batch]) -> None:
        self.socket = client.socket
        self.socket.setblocking(False)
        self._batches = batches
        self._unsent = memoryview(b"")
        self._replies = b""
        self.awaited = 0  # bytes of replies

    def has_room(self) -> bool:
        return not self.awaited and not self._unsent

    def has_unsent(self) -> bool:
        return len(self._unsent) > 0

    def begin(self) -> Batch:
        """Takes the next batch and sends what the socket takes of it."""
        batch = next(self._batches)
        self.expect(batch)
        self._unsent = memoryview(batch.wire)
        self.send_more()
        return batch

    def expect(self, batch: Batch) -> None:
        self._replies = batch.replies
        self.awaited = len(batch.replies)

    def send_more(self) -> None:
        try:
            self._unsent = self._unsent[self.socket.send(self._unsent) :]
        except BlockingIOError:
            pass  # the socket is full, or the event was about replies only

    def read(self, buffer: memoryview) -> int:
        """Compares the replies that came with what they must be; how much less is awaited."""
        try:
            count = self.socket.recv_into(buffer)
        except BlockingIOError:
            return 0  # the event was about sending only
        if count == 0 or buffer[:count] != self._replies[:count]:
            raise WrongAnswer(f"a pipeline was answered {bytes(buffer[: min(count, 200)])!r}, not as it must be")
        self._replies = self._replies[count:]
        self.awaited -= count
        return count


class Appender(Publisher):
    """Adds entries, or asks what else has replies that nobody knows: their lines are counted; none may be an error."""

    def expect(self, batch: Batch) -> None:
        self.awaited = batch.lines or wire.LINES_OF_AN_ID * batch.commands

    def read(self, buffer: memoryview) -> int:
        try:
            count = self.socket.recv_into(buffer)
        except BlockingIOError:
            return 0
        replies = bytes(buffer[:count])
        lines = replies.count(b"\n")
        if count == 0 or lines > self.awaited or replies.startswith(b"-E") or b"\n-" in replies:
            raise WrongAnswer(f"a pipeline was answered {replies[:200]!r}")
        self.awaited -= lines
        return lines


class Loop:
    """One timed run over an epoll set."""

    def __init__(self, publishers: Sequence[Publisher], subscribers: Sequence[Receiver], most_owed_bytes: int) -> None:
        self._buffer = bytearray(READ_BYTES)
        self._view = memoryview(self._buffer)
        self._publishers = {publisher.socket.fileno(): publisher for publisher in publishers}
        self._subscribers = {client.fileno(): client for client in subscribers}
        self._most_owed_bytes = most_owed_bytes
        self._deadline = 0.0
        self._owed = 0  # bytes that subscribers are still to receive
        self._unanswered = 0  # of replies: as much as all publishers await
        self.commands = 0
        self.delivered_bytes = 0
        self._epoll = select.epoll()
        for number in (*self._publishers, *self._subscribers):
            self._epoll.register(number, select.EPOLLIN)
        for client in subscribers:
            client.socket.setblocking(False)

    def run(self, seconds: float) -> None:
        """Publishes for so many seconds and returns when all replies and deliveries have arrived."""
        self._deadline = time.perf_counter() + seconds
        resting = set(self._publishers)
        while True:
            resting = {number for number in resting if not self._publish(number)}
            if not self._unanswered and not self._owed:
                if time.perf_counter() >= self._deadline:
                    return
                continue
            for number, _ in self._wait():
                receiver = self._subscribers.get(number)
                if receiver is not None:
                    self._owed -= receiver.discard(self._buffer)
                else:
                    self._unanswered -= self._publishers[number].read(self._view)
                    if not self._publish(number):
                        resting.add(number)
            if self._owed < 0:
                raise WrongAnswer(f"subscribers received {-self._owed} bytes more than was published")

    def _publish(self, number: int) -> bool:
        """Sends as much as may be under way; false when the publisher has to be asked again."""
        publisher = self._publishers[number]
        if publisher.has_unsent():
            publisher.send_more()
            if not publisher.has_unsent():
                self._epoll.modify(number, select.EPOLLIN)
        if publisher.has_room():
            if self._owed > self._most_owed_bytes or time.perf_counter() >= self._deadline:
                return False
            batch = publisher.begin()
            self.commands += batch.commands
            self.delivered_bytes += batch.delivered_bytes
            self._owed += batch.delivered_bytes
            self._unanswered += publisher.awaited
            if publisher.has_unsent():
                self._epoll.modify(number, select.EPOLLIN | select.EPOLLOUT)
        return True

    def close(self) -> None:
        self._epoll.close()

    def _wait(self) -> list[tuple[int, int]]:
        events = self._epoll.poll(PATIENCE_S, EVENTS_AT_ONCE)
        if not events:
            raise WrongAnswer(f"nothing arrived for {PATIENCE_S:.0f} s, though replies or deliveries are missing")
        return events


def drive(
    server: Server,
    publishers: Sequence[Publisher],
    subscribers: Sequence[Receiver],
    seconds: float,
    most_owed_bytes: int = 0,
) -> Tally:
    """Publishes for so many seconds, then waits for the rest."""
    loop = Loop(publishers, subscribers, most_owed_bytes)
    try:
        with Clock(server) as clock:
            loop.run(seconds)
        return clock.tally(loop.commands, loop.delivered_bytes)
    finally:
        loop.close()


def alternate(
    server: Server,
    clients: Sequence[Client],
    request: bytes | Iterator[bytes],
    is_reply: Callable[[bytes], bool],
    seconds: float,
) -> Tally:
    """Each connection sends one request, waits for its reply, sends the next: always the same, or from all of these.

    One request costs the server so little here that the general loop's own work per event would set the pace.
    """
    for client in clients:
        client.socket.setblocking(False)
    calls = {client.fileno(): (client.socket.recv, client.socket.send) for client in clients}
    requests = repeat(request) if isinstance(request, bytes) else request
    commands = len(calls)
    with select.epoll() as epoll, Clock(server) as clock:
        deadline = time.perf_counter() + seconds
        for number, (_, send) in calls.items():
            epoll.register(number, select.EPOLLIN)
            send(next(requests))
        unanswered = len(calls)
        publishing = True
        while unanswered:
            events = epoll.poll(PATIENCE_S, EVENTS_AT_ONCE)
            if not events:
                raise WrongAnswer(f"nothing arrived for {PATIENCE_S:.0f} s, though replies are missing")
            publishing = time.perf_counter() < deadline
            for number, _ in events:
                receive, send = calls[number]
                if not is_reply(got := receive(READ_BYTES_OF_ONE)):
                    raise WrongAnswer(f"the request was answered {got!r}")
                if publishing:
                    send(next(requests))
            if publishing:
                commands += len(events)
            else:
                unanswered -= len(events)
    return clock.tally(commands, 0)
