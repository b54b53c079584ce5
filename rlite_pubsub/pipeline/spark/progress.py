"""Spark's progress, as a line on a terminal that redraws itself. Without a terminal, nothing is shown.

What is done is asked of Spark's status tracker, and of a stream's own progress, in a thread: a job goes on whether
anybody looks or not.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, NamedTuple, TextIO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EVERY_S = 0.1
_WIDTH = 30
_CLEAR = "\r\x1b[K"


class Done(NamedTuple):
    """How much of how much is done; without an end, `total` is 0."""

    done: float
    total: float
    what: str = ""


Look = Callable[[], Done | None]


class Progress:
    """Bars, one after the other."""

    def __init__(self, stream: TextIO | None = None, *, is_shown: bool | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._is_shown = self._stream.isatty() if is_shown is None else is_shown

    @contextmanager
    def bar(self, label: str, look: Look) -> Iterator[None]:
        """A bar as long as the block lasts; it goes with it."""
        if not self._is_shown:
            yield
            return
        is_over = threading.Event()
        begun = time.monotonic()

        def draw() -> None:
            while not is_over.wait(_EVERY_S):
                self._stream.write(_CLEAR + line(label, look(), time.monotonic() - begun))
                self._stream.flush()

        drawer = threading.Thread(target=draw, name="progress", daemon=True)
        drawer.start()
        try:
            yield
        finally:
            is_over.set()
            drawer.join()
            self._stream.write(_CLEAR)
            self._stream.flush()

    def spark(self, label: str, session: SparkSession) -> AbstractContextManager[None]:
        """A bar of the tasks of all that this session runs meanwhile."""
        return self.bar(label, Tasks(session))


def line(label: str, done: Done | None, seconds: float) -> str:
    """Return the line as it is drawn."""
    if done is None or done.total <= 0:
        return f"{label} {'…' if done is None or not done.what else done.what} {seconds:.0f} s"
    share = min(1.0, done.done / done.total)
    full = round(share * _WIDTH)
    return f"{label} [{'█' * full}{'·' * (_WIDTH - full)}] {share:4.0%} {done.what} {seconds:.0f} s"


class Tasks:
    """Tasks of the jobs that a session began since this was made."""

    def __init__(self, session: SparkSession) -> None:
        self._tracker = session.sparkContext.statusTracker()
        self._stages: dict[int, tuple[int, int]] = {}

    def __call__(self) -> Done | None:
        for stage in self._tracker.getActiveStageIds():
            info = self._tracker.getStageInfo(stage)
            if info is not None:
                self._stages[stage] = info.numCompletedTasks, info.numTasks
        for stage, (_, total) in list(self._stages.items()):
            info = self._tracker.getStageInfo(stage)
            if info is None:  # it is over, and forgotten
                self._stages[stage] = total, total
            else:
                self._stages[stage] = info.numCompletedTasks, info.numTasks
        done = sum(one for one, _ in self._stages.values())
        total = sum(other for _, other in self._stages.values())
        return Done(done, total, f"{done}/{total} tasks") if total else None
