"""A process beside a server, which does what would keep the loop: it is told what to do by its standard input, for that
may have secrets in it, and ends when that ends. One that dies by itself is begun again.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable

log = logging.getLogger("rlite_pubsub")

OWN_GROUP = 0
"""Ctrl-C goes to all of the terminal's foreground group: the server alone should get it, and end its processes in
order."""


class Companion:
    """Starts a process beside a server, and starts it again when it dies."""

    def __init__(
        self, what: str, module: str, restart_s: float, note: Callable[[str, str, tuple[bytes, ...]], None]
    ) -> None:
        """`what` it is called in the log. `note` is called with (code, text, subject) when it has ended by itself."""
        self._note = note
        self._what = what
        self._module = module
        self._restart_s = restart_s
        self._words: dict[str, object] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._died_at: float | None = None

    @property
    def pid(self) -> int:
        """Its process id; 0 while it does not run."""
        return self._process.pid if self._process is not None else 0

    def begin(self, words: dict[str, object]) -> None:
        """Start it; in the place of the one that there is. Raises OSError."""
        self.end(0)
        self._words = words
        command = [sys.executable, "-m", self._module]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=OWN_GROUP)
        self.tell(words)

    def tell(self, words: dict[str, object]) -> None:
        """Send another line; a process that starts later gets it too."""
        self._words = self._words | words
        if self._process is None:
            return
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(self._words).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as failure:
            log.warning("The %s process does not listen: %s", self._what, failure)

    def cron(self, now: float) -> None:
        """Begin again where it has died."""
        process = self._process
        if self._died_at is None:
            if process is not None and process.poll() is not None:
                self._died_at = now
                log.warning("The %s process ended (%s) and will be started again.", self._what, process.returncode)
                told = f"The {self._what} process ended with {_end_of(process.returncode)}, and is started again"
                self._note("companion_ended", told, (self._what.encode(),))
        elif not self._died_at <= now < self._died_at + self._restart_s:
            try:
                self.begin(self._words)
            except OSError as failure:  # the system has no process or descriptor left
                self._died_at = now
                log.warning("Can't start the %s process: %s", self._what, failure)

    def kill(self) -> None:
        """Kill it: it is of no use in its present state."""
        if self._process is not None:
            self._process.kill()

    def end(self, grace_s: float) -> None:
        """End it; it may finish what it is doing."""
        process, self._process, self._died_at = self._process, None, None
        if process is None:
            return
        assert process.stdin is not None
        try:
            process.stdin.close()
        except OSError:
            pass  # it was gone before
        try:
            process.wait(grace_s)
        except subprocess.TimeoutExpired:
            process.kill()  # at whatever step: that is what the steps are for
            process.wait()


def _end_of(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
