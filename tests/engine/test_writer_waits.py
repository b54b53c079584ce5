"""Sessions in line before the writer locks: whatever becomes of one of them, those behind it are let go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlite_pubsub.engine.waits import writer_wait
from rlite_pubsub.engine.waits.writer_wait import HELD_UP, WriterWaits
from rlite_pubsub.storage.errors import StoreHeld

DATA, LIVE = Path("store/data.mdb"), Path("store/live.mdb")


class Lock:
    """Of one environment: it can be had, or not."""

    def __init__(self) -> None:
        self.line = 0
        self.is_served = False
        self.is_taken = True
        self.is_held = False  # as far as anybody has found out
        self.is_written_here = False
        self.given_back_at = 0.0

    def is_free(self) -> bool:
        return not self.is_taken

    def begin_serving(self) -> None:
        self.is_served = True

    def end_serving(self) -> None:
        self.is_served = False


class Line:
    """All of it, with time that goes on when it is told to."""

    def __init__(self, patience_s: float = 1000.0) -> None:
        self.locks = {DATA: Lock(), LIVE: Lock()}
        self.later: list[Callable[[], None]] = []
        environments: Any = [SimpleNamespace(path=path, writer=lock) for path, lock in self.locks.items()]
        hub: Any = SimpleNamespace(call_when_held=lambda note: None, write_held=lambda: None)
        keyspace: Any = None
        self.waits = WriterWaits(
            environments, hub, keyspace, lambda seconds, look: self.later.append(look), lambda: patience_s
        )

    def go_on(self) -> None:
        """What is due is done."""
        due, self.later = self.later, []
        for look in due:
            look()

    def held(self, path: Path) -> StoreHeld:
        return StoreHeld(path, lambda: "held")


class Session:
    """It asks for one lock after the other, and is done when it has had all."""

    def __init__(self, line: Line, *paths: Path, fails: bool = False) -> None:
        self._line = line
        self._left = list(paths)
        self._fails = fails
        self.blocked: object = None
        self.is_done = False
        self.resume()

    def wait_for(self, end: object) -> None:
        self.blocked = end

    def go_on(self) -> None:
        self.blocked = None
        if not self._fails:
            self.resume()

    def resume(self) -> None:
        while self._left:
            path = self._left[0]
            if self._line.locks[path].is_taken:
                session: Any = self
                assert self._line.waits.park(session, self._line.held(path))
                return
            self._left.pop(0)
        self.is_done = True


def test_those_in_line_go_on_in_their_order_once_it_is_free() -> None:
    line = Line()
    sessions = [Session(line, DATA) for _ in range(3)]
    line.go_on()
    assert [session.blocked for session in sessions] == [HELD_UP] * 3
    line.locks[DATA].is_taken = False
    line.go_on()
    assert all(session.is_done for session in sessions)
    assert (line.waits.waiting, line.locks[DATA].line, line.later) == (0, 0, [])


def test_nobody_is_refused_because_this_process_itself_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr(writer_wait, "monotonic", lambda: now_s)
    line = Line(patience_s=5)
    session = Session(line, DATA)
    now_s += 60  # all of it, and no look in between
    line.go_on()
    assert session.blocked is HELD_UP
    line.locks[DATA].is_taken = False
    line.go_on()
    assert session.is_done


def test_who_has_to_stand_in_the_other_line_next_leaves_the_first_one() -> None:
    line = Line()
    first, second = Session(line, DATA, LIVE), Session(line, DATA)
    line.locks[DATA].is_taken = False
    line.go_on()
    assert second.is_done and not first.is_done
    assert (line.locks[DATA].line, line.locks[LIVE].line) == (0, 1)
    line.locks[LIVE].is_taken = False
    line.go_on()
    assert first.is_done
    assert (line.waits.waiting, line.locks[LIVE].line, line.later) == (0, 0, [])


def test_one_that_breaks_leaves_those_behind_it_their_turn() -> None:
    line = Line()
    Session(line, DATA, fails=True)
    behind = Session(line, DATA)
    line.locks[DATA].is_taken = False
    line.go_on()
    assert behind.is_done
    assert (line.waits.waiting, line.locks[DATA].line) == (0, 0)
