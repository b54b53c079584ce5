"""A process of a model: a real server without sockets and loop, whose every step on the store is a step of the model.

Each process has a thread, and one thread runs at a time: it stops before every transaction and before every ring, until
the model lets it go on or kills it. So what happens between two steps of one process is chosen, not left to chance.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from modelled_line import Line

from rlite_pubsub.engine.delivery import Delivery
from rlite_pubsub.engine.engine import Engine, Surroundings
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.pubsub.kinds import CHANNELS
from rlite_pubsub.pubsub.publish import publish
from rlite_pubsub.server.connection import Connection
from rlite_pubsub.server.connections import Connections
from rlite_pubsub.server.turns import READABLE, WRITABLE, Turns
from rlite_pubsub.storage.store import Store

PATIENCE_S = 60.0


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now_s = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now_s

    def monotonic_ns(self) -> int:
        return int(self.now_s * 1e9)


class _Killed(BaseException):
    """Ends what a process was at."""


class SteppedEnvironment:
    """As the one behind it; the model may do something else before each transaction."""

    def __init__(self, environment: Any, step: Callable[[], None]) -> None:
        self._environment = environment
        self._step = step

    def write(self, work: Any, *, freeing: bool = False, adding_bytes: int = 0) -> Any:
        self._step()
        return self._environment.write(work, freeing=freeing, adding_bytes=adding_bytes)

    def read(self, work: Any) -> Any:
        self._step()
        return self._environment.read(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


class SteppedStore:
    """As the one behind it, seen by one process."""

    def __init__(self, store: Store, step: Callable[[], None]) -> None:
        self._store = store
        self.live = SteppedEnvironment(store.live, step)
        self.data = SteppedEnvironment(store.data, step)
        self.reaped = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class Process:
    """A server, or a program that only publishes."""

    def __init__(self, name: str, store: Store, clock: Clock) -> None:
        self.name = name
        self.is_dead = False
        self.lines: list[tuple[Line, Connection]] = []
        self._store = SteppedStore(store, self._step)
        self._is_stepped = False
        self.delivery = Delivery(self._store, "server", lambda: None)  # type: ignore[arg-type]
        self.delivery.membership.reap()
        self._own = self.delivery.membership.join()
        self._loop = asyncio.new_event_loop()
        self.turns = Turns(self._loop, partial(end_turn, self.delivery.agenda))
        self.engine = Engine(
            Settings(),
            self.delivery.hub,
            self.delivery.rules,
            store.data,
            self.delivery,
            Surroundings(call_soon=self._ask_for_turn),
            clock,
        )
        self._connections = Connections(self.engine, self.turns)
        self.wants_turn = False
        self._work: Callable[[], None] | None = None
        self._failure: BaseException | None = None
        self._go = threading.Semaphore(0)
        self._stopped = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._is_stepped = True

    # -- what the model does with it

    @property
    def is_busy(self) -> bool:
        return self._work is not None

    @property
    def is_rung(self) -> bool:
        bell = self.delivery.membership.bell
        return bell is not None and bell.wait(0)

    def begin(self, work: Callable[[], None]) -> None:
        """Start a turn, up to its first step."""

        def turn() -> None:
            work()
            end_turn(self.delivery.agenda)

        self._work = turn
        self.go_on()

    def go_on(self) -> None:
        """Take one more step."""
        self._go.release()
        assert self._stopped.acquire(timeout=PATIENCE_S), f"{self.name} hangs"
        if self._failure is not None:
            raise self._failure

    def finish(self) -> None:
        """Take all steps of the turn."""
        while self.is_busy:
            self.go_on()

    def kill(self) -> None:
        """As by SIGKILL, wherever it is: its lock is free, its sockets are closed, its records stay."""
        self.is_dead = True
        if self.is_busy:
            self.go_on()
        subscriber = self.delivery.membership._subscriber
        assert subscriber is not None
        subscriber.bell.close()
        subscriber._lock.release()
        for line, _ in self.lines:
            line.close()
        self._end_thread()

    def end(self) -> None:
        """It leaves nothing."""
        self._is_stepped = False
        if not self.is_dead:
            self.finish()
            for _, connection in self.lines:
                connection.close_now()
            self.engine.end_durables()
            self.delivery.membership.leave()
            self._end_thread()
        self.delivery.post.close()
        self.turns.close()
        self._loop.close()

    # -- its turns

    def accept(self, line: Line) -> None:
        # The line is its wire as well: without one, a connection reads and writes a descriptor, past the model.
        connection = Connection(self._connections, line, "127.0.0.1:1", wire=line)  # type: ignore[arg-type]
        connection.name = b"durable:d"
        self.engine.sessions[connection.id] = connection
        self.turns.watch(connection.fd, connection)
        self.lines.append((line, connection))
        line.step = self._step
        connection.on_ready(READABLE)

    def hear(self) -> None:
        """Its bell was rung."""
        bell = self.delivery.membership.bell
        assert bell is not None
        bell.clear()
        self.delivery.hub.receive(self._own)

    def tick(self) -> None:
        """As Node._cron, as far as messages go."""
        self.delivery.hub.receive(self._own)
        self.delivery.hub.settle()
        self.engine.tend_durables()

    def publish(self, payload: bytes) -> None:
        publish(self.delivery.hub, CHANNELS, b"news", [b"%d\r\n%b" % (len(payload), payload)])

    def look_at(self, line: Line, connection: Connection) -> None:
        """What the poller would say."""
        if connection.fd >= 0:
            connection.on_ready(line.events)

    def drain(self, connection: Connection) -> None:
        if connection.fd >= 0:
            connection.on_ready(WRITABLE)

    # -- inside

    def _ask_for_turn(self) -> None:
        self.wants_turn = True

    def _step(self) -> None:
        if not self._is_stepped or threading.current_thread() is not self._thread:
            return
        self._stopped.release()
        self._go.acquire()
        if self.is_dead:
            raise _Killed

    def _run(self) -> None:
        while True:
            self._go.acquire()
            if self._work is None:
                return
            try:
                self._work()
            except _Killed:
                self._is_stepped = False
            except BaseException as failure:
                self._failure = failure
            self._work = None
            self._stopped.release()

    def _end_thread(self) -> None:
        self._go.release()
        self._thread.join(PATIENCE_S)
