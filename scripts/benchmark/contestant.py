"""A server under test: how it is started, and one running instance of it, which is always killed at the end."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from . import cores, process, wire
from .client import Client

START_LIMIT_S = 120.0
RESTART_LIMIT_S = 120.0
LOOK_AGAIN_S = 0.0005
BLOCK_BYTES = 512  # of stat
SETTLE_LIMIT_S = 10.0
SETTLED_FOR_S = 0.06
REDIS = "Redis"
OURS = "ours"
REDIS_COMMAND = (
    '{program} --port {port} --bind 127.0.0.1 --dir {dir} --save "" --appendonly no --daemonize no'
    ' --client-output-buffer-limit "pubsub 0 0 0"'
)
OURS_COMMAND = "{program} serve --port {port} --dir {dir}"


class ServerFailed(Exception):
    """The server did not start or has ended by itself."""


@dataclass(frozen=True)
class Contestant:
    """A name and the command that starts it; `{port}` and `{dir}` in the command are filled in."""

    name: str
    command: str

    def start(self, options: str = "") -> Server:
        return Server(self, options)

    def version(self) -> str:
        """What it says to `--version`, or why it does not."""
        try:
            asked = subprocess.run(
                [shlex.split(self.command)[0], "--version"], capture_output=True, text=True, timeout=START_LIMIT_S
            )
        except (OSError, subprocess.TimeoutExpired) as failure:
            return f"unknown ({failure})"
        lines = (asked.stdout + asked.stderr).strip().splitlines() or [f"nothing, status {asked.returncode}"]
        return f"unknown ({lines[-1]})" if asked.returncode else lines[0]


def redis_contestant() -> Contestant | None:
    program = shutil.which("redis-server")
    return program and Contestant(REDIS, REDIS_COMMAND.replace("{program}", shlex.quote(program))) or None


def our_contestant(command: str | None) -> Contestant | None:
    """The given command, or the `rlite-pubsub` of this Python, of scripts/serve's environment or of the PATH."""
    if command:
        return Contestant(OURS, command)
    checkout = Path(__file__).resolve().parents[2]
    environment = Path(os.environ.get("RLITE_VENV", checkout / ".venv"))  # where scripts/serve installs to
    beside = (Path(sys.executable).parent, environment / "bin")
    found = [str(folder / "rlite-pubsub") for folder in beside if os.access(folder / "rlite-pubsub", os.X_OK)]
    program = found[0] if found else shutil.which("rlite-pubsub")
    return program and Contestant(OURS, OURS_COMMAND.replace("{program}", shlex.quote(program))) or None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One running server with a folder of its own; leaving the context kills it and removes the folder."""

    def __init__(self, contestant: Contestant, options: str = "") -> None:
        self.name = contestant.name
        self.contestant = contestant
        self.port = free_port()
        self.http_port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix=f"bench-{contestant.name}-"))
        self.store = self.folder / "store"
        self.store.mkdir()
        command = contestant.command.replace("{port}", str(self.port)).replace("{dir}", str(self.store))
        self._words = [*shlex.split(command), *shlex.split(options.replace("{http_port}", str(self.http_port)))]
        self._log = self.folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self.first_pong_s = self._launch(wire.command(b"PING"), b"+PONG\r\n", START_LIMIT_S)
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> Server:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """For redis-py's programs."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Of the process that was started."""
        return self._running().pid

    def connect(self, receive_buffer: int | None = None) -> Client:
        return Client(self.port, receive_buffer)

    def connect_http(self, receive_buffer: int | None = None) -> Client:
        return Client(self.http_port, receive_buffer)

    def cpu_seconds(self) -> float:
        return process.cpu_seconds(self._running().pid)

    def waited_seconds(self) -> float:
        return process.waited_seconds(self._running().pid)

    def resident_bytes(self) -> int:
        return process.resident_bytes(self._running().pid)

    def settle(self) -> None:
        """Waits until the server uses no CPU: what a round leaves behind must not be paid for by the next one."""
        limit = time.monotonic() + SETTLE_LIMIT_S
        seen = self.cpu_seconds()
        while time.monotonic() < limit:
            time.sleep(SETTLED_FOR_S)
            now = self.cpu_seconds()
            if now == seen:
                return
            seen = now

    def check(self, patience_s: float = 0.0) -> None:
        """Raises ServerFailed with the end of the server's log if it does not run, or ends while we are patient."""
        try:
            status = self._running().wait(patience_s)
        except subprocess.TimeoutExpired:
            return
        raise ServerFailed(f"{self.name} ended with status {status}: {self._last_words()}")

    def restart(self, request: bytes, answer: bytes) -> float:
        """kill -9, and a start in the same folder: how many seconds pass from there to this answer."""
        self._end()
        return self._launch(request, answer, RESTART_LIMIT_S)

    def disk_bytes(self) -> int:
        """What the store takes."""
        return sum(file.stat().st_blocks * BLOCK_BYTES for file in self.store.rglob("*") if file.is_file())

    def kill(self) -> None:
        """A second time it does nothing."""
        self._end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self) -> None:
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it and all of its children are gone already
            self._process.wait()
            self._process = None

    def _launch(self, request: bytes, answer: bytes, limit_s: float) -> float:
        """Starts the process; seconds to this answer."""
        began = time.perf_counter()
        with self._log.open("wb") as log, cores.children_on(cores.SERVER_CORES):
            self._process = subprocess.Popen(
                self._words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        while time.perf_counter() < began + limit_s:
            self.check()
            try:
                with self.connect() as client:
                    if client.is_loaded(request, answer):
                        return time.perf_counter() - began
            except ConnectionRefusedError:
                pass  # it does not listen yet
            time.sleep(LOOK_AGAIN_S)
        raise ServerFailed(f"{self.name} did not answer within {limit_s:.0f} s: {self._last_words()}")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise ServerFailed(f"{self.name} has been killed")
        return self._process

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return " / ".join(lines[-3:]) or "it said nothing"
