"""A line now and then that says how far a long run of tests is, and roughly how long it still takes.

It counts what has been done in the seconds that each test took the last time, which are kept in the folder that
RLITE_TEST_TIMES names, or in tests where they are not known. Without that variable nobody asked for it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

EVERY_S = 20.0


class Progress:
    """What is told by the process that the tests report to."""

    def __init__(self, config: pytest.Config, file: Path) -> None:
        self._config = config
        self._file = file
        self._before = _read(file)
        self._took: dict[str, float] = {}
        self._began = self._told = monotonic()
        self._failed = 0
        self._collected: list[str] = []
        self._done = 0

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No dots: the lines say it."""
        return ("passed" if report.when == "call" else "", "", "") if report.passed else None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected = [item.nodeid for item in session.items]

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._collected = ids

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._took[report.nodeid] = self._took.get(report.nodeid, 0.0) + report.duration
        self._failed += report.failed
        self._done += report.when == "teardown"
        if monotonic() - self._told >= EVERY_S:
            self._told = monotonic()
            terminal: Any = self._config.pluginmanager.get_plugin("terminalreporter")
            terminal.ensure_newline()
            terminal.write_line(self.line(self._told - self._began))
            terminal.flush()  # where it is no terminal but a file, too

    def line(self, elapsed_s: float) -> str:
        """How far it is."""
        usual = sorted(self._before.values())[len(self._before) // 2] if self._before else 1.0
        work = sum(self._before.get(one, usual) for one in self._collected)
        done = sum(self._before.get(one, usual) for one in self._took)
        share = min(done / work, 1.0) if work else 1.0
        left = f"about {elapsed_s * (1 - share) / share / 60 + 0.5:.0f} min left" if share > 0.02 else "just begun"
        failed = f", {self._failed} failed" if self._failed else ""
        return f"-- {self._done} of {len(self._collected)} tests, {share:.0%}{failed}, {left}"

    def pytest_sessionfinish(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps({**self._before, **self._took}))
        new.replace(self._file)


def _read(file: Path) -> dict[str, float]:
    return dict(json.loads(file.read_text())) if file.exists() else {}


def times_before(run: str) -> dict[str, float]:
    """How many seconds each test took the last time, as far as that is known."""
    folder = os.environ.get("RLITE_TEST_TIMES")
    return _read(Path(folder, f"{run}.json")) if folder else {}


def tell_progress(config: pytest.Config, run: str) -> None:
    """Do so in this run, whose name is that of no other."""
    folder = os.environ.get("RLITE_TEST_TIMES")
    if folder and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress(config, Path(folder, f"{run}.json")), "progress")
