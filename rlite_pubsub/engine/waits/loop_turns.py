"""Turns of the loop for a thread: the thread has work done there, and waits for its commit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine

_GRACE_S: Final = 2.0


class LoopTurns:
    """The turns of one thread."""

    def __init__(self, engine: Engine, check: Callable[[], None], calm: tuple[type[Exception], ...]) -> None:
        """`check` raises what ends the thread; it is called while it waits. `calm`: exceptions that say that nothing
        was done; the turn goes on without it."""
        self._engine = engine
        self._check = check
        self._calm = calm

    def do(self, work: Callable[[], None]) -> None:
        """Have the loop do this as a turn, once. Raises what it raises, and StoreError if it cannot be committed."""
        engine = self._engine
        call = engine.call_from_thread
        assert call is not None
        done = threading.Event()
        failures: list[Exception] = []

        def turn() -> None:
            try:
                work()
                engine.commit()
                if engine.key_commit.failure is not None:
                    raise engine.key_commit.failure
            except self._calm as failure:
                failures.append(failure)
            except Exception as failure:
                if engine.keyspace.turn.txn is not None:
                    engine.keyspace.fail(failure)
                    engine.commit()
                failures.append(failure)
            finally:
                done.set()

        call(turn)
        while not done.wait(_GRACE_S):
            self._check()
        for failure in failures:
            raise failure
