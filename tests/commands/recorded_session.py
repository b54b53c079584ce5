"""A session without a socket: what is said to it is kept. Its keys are in a store of the house's own."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path

from engines import open_data

import rlite_pubsub.commands.all  # noqa: F401  fills the command table
from rlite_pubsub.engine.dispatch import execute
from rlite_pubsub.engine.engine import Engine, Surroundings
from rlite_pubsub.engine.session import CommandSession
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.keyspace.topic.rules import Rules
from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.storage.environment import Environment


class Clock:
    """Time that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Timers:
    """Callbacks that wait for their turn, as a loop keeps them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, callback: Callable[[], None]) -> object:
        self._waiting.append((self._clock.now + seconds, callback))
        return None

    def advance(self, seconds: float = 0.0) -> None:
        """Let time pass, and call what is due."""
        self._clock.now += seconds
        due = [callback for time, callback in self._waiting if time <= self._clock.now]
        self._waiting = [waiting for waiting in self._waiting if waiting[0] > self._clock.now]
        for callback in due:
            callback()


class RecordedSession(CommandSession):
    """Executes like a connection; requests wait while it is blocked."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        engine.sessions[self.id] = self
        self.recorded = b""
        self.waiting: list[list[bytes]] = []
        self.gone = False

    def do(self, *words: bytes | str) -> bytes:
        """Execute a request; all that was said since the last one."""
        self.waiting.append([word.encode() if isinstance(word, str) else word for word in words])
        if self.blocked is None:
            self.resume()
        return self.heard()

    def heard(self) -> bytes:
        """All that was said and not yet heard."""
        self.engine.commit()
        end_turn(self.hub.agenda)
        said, self.recorded = self.recorded, b""
        return said

    def resume(self) -> None:
        while self.waiting and self.blocked is None and execute(self, self.waiting[0]):
            del self.waiting[0]

    def flush(self) -> None:
        self.dirty = False
        self.recorded += b"".join(self.said)
        self.said.clear()

    @property
    def takes_more(self) -> bool:
        return not self.gone

    def close_now(self) -> None:
        self.gone = True
        self.engine.forget(self)
        self.engine.waiting.forget(self)
        self.hub.forget(self)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{50000 + self.id}"

    @property
    def local_address(self) -> str:
        return "127.0.0.1:6379"


built: list[House] = []
"""Those that stand. An engine is a knot of references, and the garbage collector may come for it late: until then its
descriptors are open, three of the thousand that a process has."""


class House:
    """An engine with its clock, its timers and its keys."""

    def __init__(self, **settings: str) -> None:
        self.clock = Clock()
        self.timers = Timers(self.clock)
        initial = {name.replace("_", "-"): value for name, value in settings.items()}
        folder = tempfile.mkdtemp(prefix="rlite-house-")
        self.data = open_data(Path(folder) / "data.mdb", 1 << 30)
        rules = Rules(self.data)
        surroundings = Surroundings(
            call_later=lambda seconds, callback: self.timers.call_later(seconds, callback), stopwatch=self.clock
        )
        self.engine = Engine(
            Settings(initial), Hub(lambda counts: None, rules=rules), rules, self.data, None, surroundings, self.clock
        )
        self.demolish = weakref.finalize(self, _demolish, self.data, folder)
        built.append(self)

    def session(self) -> RecordedSession:
        return RecordedSession(self.engine)


def _demolish(data: Environment, folder: str) -> None:
    data.close()
    shutil.rmtree(folder)
