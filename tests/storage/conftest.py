"""Other processes, whose programs stand in the test as text, and transactions that leave nothing."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment


class Program:
    """Another Python process. It is killed when the test ends."""

    def __init__(self, source: str, arguments: tuple[object, ...]) -> None:
        command = [sys.executable, "-c", textwrap.dedent(source), *map(str, arguments)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def line(self) -> str:
        """The next line that it prints."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line, self.errors()
        return line

    def tell(self, line: str = "") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Its exit status; minus the signal if one ended it."""
        self.process.communicate()
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def errors(self) -> str:
        self.process.kill()
        return self.process.communicate()[1]


Start = Callable[..., Program]


@pytest.fixture
def start() -> Iterator[Start]:
    programs: list[Program] = []

    def start_program(source: str, *arguments: object) -> Program:
        programs.append(Program(source, arguments))
        return programs[-1]

    yield start_program
    for program in programs:
        if program.process.poll() is None:
            program.kill()


@pytest.fixture(scope="module")
def shared_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    opened = LmdbEnvironment(tmp_path_factory.mktemp("shared") / "live.mdb", "no", quota_bytes=1 << 30)
    yield opened
    opened.close()


@pytest.fixture
def txn(shared_environment: Environment) -> Iterator[Txn]:
    """A transaction that is never committed."""
    transaction = shared_environment.handle.lmdb.begin(write=True)
    yield transaction
    transaction.abort()
