"""Programs that open a store themselves, or redis-py's that talk to redis-server: run by a Python that has both."""

from __future__ import annotations

import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from . import process
from .client import WrongAnswer
from .contestant import OURS, Contestant, Server, ServerFailed
from .shape import Shape

PROGRAMS = Path(__file__).parent / "programs"
PATIENCE_S = 300.0


def environment() -> Path:
    """That of scripts/serve and scripts/test."""
    checkout = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("RLITE_VENV", checkout / ".venv"))


@functools.cache
def python(modules: str = "redis, rlite_pubsub", place: Path = Path()) -> str:
    """This Python, or that of the environment (or of a place in it): one that has redis-py and rlite_pubsub, or what is
    asked."""
    for candidate in (sys.executable, str(environment() / place / "bin" / "python")):
        if os.access(candidate, os.X_OK):
            asked = subprocess.run([candidate, "-c", f"import {modules}"], capture_output=True)
            if asked.returncode == 0:
                return candidate
    raise ServerFailed(f"no Python was found that has {modules}")


class Folder(Server):
    """The contestant that is no process: a store which programs open. Leaving the context removes it."""

    def __init__(self) -> None:
        self.name = OURS
        self.folder = Path(tempfile.mkdtemp(prefix="bench-folder-"))
        self.store = self.folder / "store"

    @property
    def url(self) -> str:
        return f"rlite://{self.store}"

    def settle(self) -> None:
        """Nothing runs."""

    def check(self, patience_s: float = 0.0) -> None:
        """Nothing can have ended."""

    def kill(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class Program:
    """A running program of programs/: says lines of JSON, and is told to go on by an empty line."""

    def __init__(
        self,
        name: str,
        *arguments: object,
        interpreter: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        file = PROGRAMS / (name if "." in name else f"{name}.py")
        options = ["-P"] if file.suffix == ".py" else []
        command = [interpreter or python(), *options, str(file), *map(str, arguments)]
        self.name = name
        self._complaints = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            start_new_session=True,
            env=os.environ | (variables or {}),
        )
        os.sched_setaffinity(self._process.pid, range(os.cpu_count() or 1))  # the generator itself only waits

    def hear(self) -> Any:
        """What it says next."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise WrongAnswer(f"{self.name} {'ended' if ready else 'fell silent'}: {self._last_words()}")
        return json.loads(line)

    def go_on(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def end(self) -> None:
        """End one that does not end by itself."""
        self._process.kill()

    def waited_seconds(self) -> float:
        """Time so far in which it could have run and something else had the cores."""
        return process.waited_seconds(self._process.pid)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is None:
                self._process.communicate(timeout=PATIENCE_S)
        finally:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it and all that it started are gone already
            self._process.communicate()
            self._complaints.close()

    def _last_words(self) -> str:
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "without a word"


def start(contestant: Contestant, shape: Shape) -> Server:
    """The contestant for one round: ours may be a folder without a server."""
    if not shape.needs_server and contestant.name == OURS:
        return Folder()
    return contestant.start(shape.options_of(contestant.name))
