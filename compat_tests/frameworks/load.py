"""What programs/load.py and load.js note of a test's jobs, and the worker that does them."""

from __future__ import annotations

from collections.abc import Callable

from patience import until

from compat_tests.frameworks.stage import Program, Stage

ENOUGH = 25
"""So many more are acknowledged, and done: those ahead when something was killed, and others."""


class Load:
    """One worker at a time does the jobs of one client."""

    def __init__(self, stage: Stage, start: Callable[[], Program], ready: str, restarts: bool) -> None:
        self._stage = stage
        self._start = start
        self._ready = ready
        self._restarts = restarts
        self._at_kills: list[set[int]] = []
        self.worker = self.start_worker()

    def start_worker(self) -> Program:
        self.worker = self._start()
        self.worker.wait_for(self._ready)
        return self.worker

    def kill_worker(self) -> None:
        """As `kill -9`, and another one takes its place."""
        self.worker.kill()
        self.start_worker()

    def has_killed(self) -> None:
        """Worker or server: what was under way is remembered, with the number whose acknowledgement was on its way."""
        self._at_kills.append({*self._undone(), max(self._noted("acknowledged")) + 1})

    def all_are_done(self, but: int) -> None:
        """All that were acknowledged; for each kill so many may be missing of those that were under way."""
        forgivable = set().union(*self._at_kills)
        most = but * len(self._at_kills)
        self.until(lambda: len(self._undone()) <= most and self._undone() <= (forgivable if but else set()), "the rest")

    def has_made_up(self) -> None:
        """What was under way at the kills, and acknowledged, is done."""
        at_kills = set().union(*self._at_kills)
        self.until(lambda: not self._undone() & at_kills, "what was under way")

    def goes_on(self) -> None:
        """More is acknowledged, and more is done."""
        counts = [len(self._noted(file)) for file in ("acknowledged", "done")]
        self.until(
            lambda: all(
                len(self._noted(file)) >= count + ENOUGH
                for file, count in zip(("acknowledged", "done"), counts, strict=True)
            ),
            "more jobs",
        )

    def stop(self) -> None:
        """The client offers nothing more."""
        (self._stage.folder / "enough").touch()

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait; a worker that has ended is started again where that is its way."""

        def holds() -> bool:
            if self._restarts and self.worker.has_ended():
                self.worker.kill()  # what it has started
                self.start_worker()
            return condition()

        try:
            until(holds, what)
        except AssertionError as failure:
            raise AssertionError(f"{failure}; not done: {sorted(self._undone())}\n{self._stage.told()}") from None

    def _undone(self) -> set[int]:
        return {*self._noted("acknowledged")} - {*self._noted("done")}

    def _noted(self, file: str) -> list[int]:
        notes = self._stage.folder / file
        return [int(line) for line in notes.read_text().split()] if notes.exists() else []
