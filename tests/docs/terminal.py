"""A command in a terminal of its own, as a reader types it."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

from expected import begins

SETTLING_S = 60
QUIET_S = 0.15


def serves(command: str) -> bool:
    """Whether it starts a server of ours."""
    return re.search(r"\bserve\b", command.partition("#")[0]) is not None


def _servers(command: str) -> int:
    """How many servers it starts: one, or one for each word of a loop."""
    loop = re.match(r"for \w+ in ([^;]+);", command)
    return len(loop[1].split()) if loop else 1


class Terminal:
    """Runs one command until it ends or is closed. What it and its children print is kept."""

    def __init__(self, command: str, folder: Path, environment: dict[str, str]) -> None:
        self.command = command
        self._printed = bytearray()
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            ["bash", "-c", command], cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
            start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def printed(self) -> str:
        return self._printed.decode(errors="replace").replace("\r\n", "\n")

    def finish(self, patience_s: float) -> tuple[int, str]:
        """Its exit status and all that it has printed."""
        try:
            status = self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.command} does not end; it has printed\n{self.printed}") from None
        self._thread.join(1)
        return status, self.printed

    def settle(self, answer: str | None) -> None:
        """Returns once it has printed what it should, or, where the page does not say, something, and then no more."""
        deadline = time.monotonic() + SETTLING_S
        is_server = serves(self.command) or self.command.startswith("redis-server")
        before = -1
        while time.monotonic() < deadline:
            assert self._process.poll() in (None, 0), f"{self.command} has ended; it printed\n{self.printed}"
            if answer is not None:
                if begins(answer, self.printed):
                    return
            elif is_server:
                if self.printed.count("eady to accept connections") >= _servers(self.command):
                    return
            elif self._process.poll() == 0 or 0 < len(self._printed) == before:
                return
            before = len(self._printed)
            time.sleep(0.02 if answer or is_server else QUIET_S)
        raise AssertionError(f"{self.command} printed\n{self.printed}\nand the page says\n{answer or 'something'}")

    def close(self) -> None:
        """Ends it and all that it has started."""
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, how)
            except ProcessLookupError:
                break
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                continue
        self._process.wait()
        self._thread.join(1)
        os.close(self._ours)

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._ours, 65536)
            except OSError:
                return
            if not data:
                return
            self._printed += data
