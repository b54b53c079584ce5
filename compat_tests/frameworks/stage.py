"""Where frameworks play: a server that can be killed, and their programs as processes.

RLITE_FRAMEWORKS_REFERENCE=1 has redis-server in the server's place: what fails there is the program's fault.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import redis
from patience import PATIENCE_S, until
from ports import free_port
from server_process import ServerProcess

from compat_tests.servers import REDIS_SERVER

PROGRAMS = Path(__file__).parent / "programs"
BIN = Path(sys.executable).parent
_TYPE_REFUSED = " object expected; got "
"""What compiled code says to an argument of another type than it declares. A framework logs it, and goes on."""


class Server:
    """Ours, which keeps its port and its store when it is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.port = free_port()
        self._process: ServerProcess | subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        if os.environ.get("RLITE_FRAMEWORKS_REFERENCE"):
            assert REDIS_SERVER is not None
            words = ["--port", str(self.port), "--dir", str(self._folder)]
            words += ["--appendonly", "yes", "--appendfsync", "always"]
            self._process = subprocess.Popen([REDIS_SERVER, *words], stdout=subprocess.DEVNULL)
            until(self._answers, "redis-server")
        else:
            self._process = ServerProcess(self._folder, port=self.port)

    def kill(self) -> None:
        """As `kill -9`."""
        process = self._process.process if isinstance(self._process, ServerProcess) else self._process
        assert process is not None
        process.kill()
        process.wait()
        if isinstance(self._process, ServerProcess):
            self._process.clean_up()

    def flush(self) -> None:
        with redis.Redis(port=self.port) as client:
            client.flushall()

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except ConnectionRefusedError:
            return False
        return True


class Program:
    """A process with all of its children, and what they have printed."""

    def __init__(self, words: list[str], folder: Path, environment: dict[str, str], log: Path) -> None:
        self.name = " ".join(Path(words[0]).name.split() + words[1:])
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                words,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def printed(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until it has printed this."""

        def is_there() -> bool:
            found = self.printed().count(text) >= times
            assert found or self._process.poll() is None, f"{self.name} ended without {text!r}:\n{self.printed()}"
            return found

        try:
            until(is_there, text)
        except AssertionError as failure:
            raise AssertionError(f"{failure}\n{self.name}:\n{self.printed()}") from None

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def succeed(self) -> None:
        """It ends, with nothing to complain of."""
        code = self._process.wait(PATIENCE_S)
        assert code == 0, f"{self.name} ended with {code}:\n{self.printed()}"

    def terminate(self) -> None:
        """It is asked to end, and does so."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self.kill()

    def kill(self) -> None:
        """As `kill -9`, all of its children too, whatever group they have moved to."""
        while found := self._session():
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self._process.wait()

    def _session(self) -> list[int]:
        """Those of its session that run, itself among them."""
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and self._runs_in(entry)]

    def _runs_in(self, entry: Path) -> bool:
        try:
            state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return int(session) == self._process.pid and state not in "ZX"


class Stage:
    """Starts programs that know the server, or a folder beside them where there is none, and ends those that are
    left."""

    def __init__(self, server: Server | None, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self._programs: list[Program] = []
        self.environment = os.environ | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(PROGRAMS)}
        self.environment |= {"PATH": f"{BIN}:{os.environ['PATH']}"}
        self.environment["STORE_URL"] = "rlite:///./store"
        if server is not None:
            self.environment |= {"REDIS_URL": server.url, "REDIS_PORT": str(server.port)}
            self.environment["STORE_URL"] = f"{server.url}/0"

    def start(self, *words: str) -> Program:
        """A command of the environment, in a folder that all of a test's programs share."""
        log = self.folder / f"{len(self._programs)}.log"
        path = BIN / words[0]
        program = Program([str(path) if path.exists() else words[0], *words[1:]], self.folder, self.environment, log)
        self._programs.append(program)
        return program

    def run(self, *words: str) -> Program:
        """`start`, to its good end; if that does not come, all that others have printed is told, too."""
        program = self.start(*words)
        try:
            program.succeed()
        except (AssertionError, subprocess.TimeoutExpired) as failure:
            raise AssertionError(f"{failure}\n{self.told()}") from None
        return program

    def python(self, file: str, *words: str) -> Program:
        """Start one of the programs."""
        return self.start("python", self.program(file), *words)

    def run_python(self, file: str, *words: str) -> Program:
        """Run one of the programs to its good end."""
        return self.run("python", self.program(file), *words)

    def told(self) -> str:
        """The last words of all programs."""
        return "\n".join(f"-- {program.name}\n{program.printed()[-3000:]}" for program in self._programs)

    @staticmethod
    def program(file: str) -> str:
        """The path of one of the programs."""
        return str(PROGRAMS / file)

    def end(self) -> None:
        for program in self._programs:
            program.kill()
        refused = [program.name for program in self._programs if _TYPE_REFUSED in program.printed()]
        assert not refused, f"{refused} passed what compiled code does not take\n{self.told()}"
