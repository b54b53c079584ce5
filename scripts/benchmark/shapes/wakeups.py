"""How often a publisher without a server wakes the server that shares its folder."""

from __future__ import annotations

import select
import socket
from contextlib import ExitStack

from .. import wire
from ..client import PATIENCE_S, Client, WrongAnswer
from ..contestant import OURS, Server
from ..library import Program
from ..shape import Effort, Figure, Reading, Shape, Target
from .fanout import CHANNEL, subscribed

BATCHES = 50
DEPTH = 64
PAYLOAD = "p" * 100
READ_BYTES = 1 << 20


class Wakeups(Shape):
    """Counted, not timed: bells rung. Every session must get every message."""

    name = "server-wakeups"
    sentence = "an embedded publisher's batches of 64 to 1,000 sessions of a server: bells rung for each batch"
    contestants = (OURS,)
    warms_up = False
    rounds_at_most = 3
    figures = (Figure("wake-ups", "per batch", higher_is_better=False, target=Target(1.0, of_ratio=False)),)

    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        sessions = 50 if effort.quick else 1000
        with ExitStack() as stack:
            clients = subscribed(server, stack, sessions)
            arguments = (server.store, CHANNEL.decode(), sessions, BATCHES, DEPTH, PAYLOAD)
            publisher = stack.enter_context(Program("batches", *arguments))
            publisher.hear()
            publisher.go_on()
            _await(clients, len(wire.message(CHANNEL, PAYLOAD.encode())) * BATCHES * DEPTH)
            return (Reading(publisher.hear()["bells"] / BATCHES),)


def _await(clients: list[Client], due_bytes: int) -> None:
    """Lets the kernel drop so many bytes for each client."""
    due = {client.fileno(): due_bytes for client in clients}
    sockets = {client.fileno(): client.socket for client in clients}
    buffer = bytearray(READ_BYTES)
    with select.epoll() as epoll:
        for number in sockets:
            epoll.register(number, select.EPOLLIN)
        while due:
            events = epoll.poll(PATIENCE_S, len(sockets))
            if not events:
                raise WrongAnswer(f"{len(due)} of {len(clients)} sessions did not get all messages")
            for number, _ in events:
                count = sockets[number].recv_into(buffer, READ_BYTES, socket.MSG_TRUNC)
                if count == 0 or count > due.get(number, 0):
                    raise WrongAnswer("a session was closed, or got more than was published")
                due[number] -= count
                if not due[number]:
                    del due[number]


SHAPES: tuple[Shape, ...] = (Wakeups(),)
