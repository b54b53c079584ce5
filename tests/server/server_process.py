"""A server as a process of its own, and what can be seen of it from outside: memory, descriptors, log, store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from patience import PATIENCE_S, until
from peer import Peer
from ports import free_port


class ServerProcess:
    """`rlite-pubsub serve` in its own folder: store, log and unix socket are in it. Its first flag may be a file."""

    def __init__(
        self,
        folder: Path,
        *flags: str,
        port: int | None = None,
        store_folder: Path | None = None,
        environment: dict[str, str] | None = None,
        before_start: Callable[[], None] | None = None,
        wait: bool = True,
    ) -> None:
        self.folder = folder
        self.store_folder = store_folder or folder / "store"
        self.log_file = folder / "log"
        self._log_start = len(self.log())
        self.port = free_port() if port is None else port
        own = ["--port", str(self.port), "--dir", str(self.store_folder), "--logfile", str(self.log_file)]
        words = [*flags[:1], *own, *flags[1:]] if flags and not flags[0].startswith("-") else [*own, *flags]
        self._output = tempfile.TemporaryFile()  # a pipe that nobody reads would stop it
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rlite_pubsub", "serve", *words],
            env=os.environ | (environment or {}),
            stdout=self._output,
            stderr=subprocess.STDOUT,
            preexec_fn=before_start,
        )
        if wait:
            until(self.listens, "the server")

    @property
    def pid(self) -> int:
        return self.process.pid

    def listens(self) -> bool:
        assert self.process.poll() is None, self.log() + self.output()
        return "Ready to accept connections" in self.log()[self._log_start :]

    def connect(self, *, protocol: int = 2, receive_buffer_bytes: int | None = None) -> Peer:
        return Peer(self.port, protocol=protocol, receive_buffer_bytes=receive_buffer_bytes)

    def log(self) -> str:
        return self.log_file.read_text() if self.log_file.exists() else ""

    def output(self) -> str:
        """What it has printed."""
        self._output.seek(0)
        return self._output.read().decode()

    def memory_bytes(self) -> int:
        """VmRSS."""
        return self._status("VmRSS")

    def own_memory_bytes(self) -> int:
        """RssAnon: without the pages of files that are mapped, which the kernel takes back when it wants."""
        return self._status("RssAnon")

    def peak_memory_bytes(self) -> int:
        """VmHWM: since the start, or since `forget_peak`."""
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def end(self, by: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code; minus the signal if one killed it."""
        self.process.send_signal(by)
        return self.process.wait(PATIENCE_S)

    def exit_code(self) -> int:
        """Of one that ends by itself."""
        return self.process.wait(PATIENCE_S)

    def clean_up(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._output.close()

    def _status(self, field: str) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"no {field} in the status of a dead process")


Serve = Callable[..., ServerProcess]
"""The fixture `serve`."""
