"""Watches over the workers of a server (`workers N`): starts them, replaces one that dies, and ends all together.

A worker is forked from this process, which opens no store, starts no thread and has no event loop: a new one begins as
the first ones did. The first one is waited for alone, so that what is wrong with the configuration or the store is said
once, and is this server's exit status. A worker that ends in peace was told to by SHUTDOWN: then all end. One that dies
is replaced, later and later where that happens again and again. Where the supervisor dies, its workers end, too.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from types import FrameType

from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.server import supervision
from rlite_pubsub.server.workers.place import WorkerPlace
from rlite_pubsub.server.workers.sockets import Sockets

log = logging.getLogger("rlite_pubsub")

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 30.0
"""Before a worker is replaced that has died soon after its start."""
SOON_S = 10.0
GRACE_S = 60.0
"""For workers to end; then they are killed."""
_ENDING = (signal.SIGTERM, signal.SIGINT)

Serve = Callable[[Sequence[socket.socket], WorkerPlace], int]
"""Serves in a forked process, until it is told to stop; the exit status. Raises what a server's start raises."""


class Supervisor:
    """Starts the workers of one server, and replaces those that die."""

    def __init__(self, settings: Settings, serve: Serve, handed: Sequence[socket.socket]) -> None:
        """Listens. Raises StartupError."""
        self._settings = settings
        self._serve = serve
        self._count = settings["workers"]
        self._sockets = Sockets(settings, self._count, handed)
        self._workers: dict[int, int] = {}  # process -> number
        self._began: dict[int, float] = {}  # by number
        self._pauses: dict[int, float] = {}  # by number
        self._due: dict[int, float] = {}  # when to start one again
        self._ready: set[int] = set()
        self._told, self._tells = os.pipe()
        self._life, self._alive = os.pipe()
        self._woken, self._wakes = os.pipe()
        self._signals: list[int] = []
        self._is_announced = False
        self._ending_since: float | None = None
        self._status = 0
        for descriptor in (self._told, self._woken, self._wakes):
            os.set_blocking(descriptor, False)

    def run(self) -> int:
        """Run until all have ended; return the exit status."""
        for number in (*_ENDING, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, self._note)
        signal.set_wakeup_fd(self._wakes)
        self._every_s = supervision.watchdog_s(os.environ, os.getpid()) / 2
        try:
            self._start(0)
            while self._workers or self._due:
                self._wait()
                self._hear()
                self._bury()
                self._go_on()
        finally:
            signal.set_wakeup_fd(-1)
            self._sockets.close()
        if self._is_announced:
            log.warning("Bye bye")
        return self._status

    # -- what has happened

    def _note(self, number: int, _: FrameType | None) -> None:
        self._signals.append(number)

    def _wait(self) -> None:
        now = time.monotonic()
        ends = list(self._due.values())
        if self._ending_since is not None:
            ends.append(self._ending_since + GRACE_S)
        if self._every_s:
            ends.append(now + self._every_s)
        timeout_s = max(0.0, min(ends) - now) if ends else None
        select.select([self._told, self._woken], [], [], timeout_s)

    def _hear(self) -> None:
        """Handle workers that have begun to serve, and signals."""
        for descriptor in (self._told, self._woken):
            try:
                heard = os.read(descriptor, 4096)
            except BlockingIOError:
                continue
            if descriptor == self._told:
                self._ready.update(heard)
        signals, self._signals = self._signals, []
        for number in signals:
            if number in _ENDING:
                log.warning("Received %s scheduling shutdown...", signal.Signals(number).name)
                self._end()
            elif number == signal.SIGHUP:
                self._pass_on(signal.SIGHUP)

    def _bury(self) -> None:
        """Handle workers that have ended."""
        while self._workers:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                return
            number = self._workers.pop(process, None)
            if number is None:
                continue
            self._ready.discard(number)
            code = os.waitstatus_to_exitcode(status)
            if self._ending_since is not None:
                continue
            if code == 0:
                self._end()
            elif not self._is_announced:  # it could not even start, and has said why
                self._status = code if code > 0 else 1
                self._end()
            else:
                self._replace(number, process, code)

    def _replace(self, number: int, process: int, code: int) -> None:
        now = time.monotonic()
        if now - self._began[number] > SOON_S:
            self._pauses.pop(number, None)
        pause_s = self._pauses.get(number, FIRST_PAUSE_S)
        self._pauses[number] = min(2 * pause_s, LONGEST_PAUSE_S)
        self._due[number] = now + pause_s
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        log.warning("Worker %d (process %d) %s; another takes its place", number, process, how)

    # -- what is to be done

    def _go_on(self) -> None:
        now = time.monotonic()
        if self._ending_since is not None:
            if now - self._ending_since >= GRACE_S:
                self._pass_on(signal.SIGKILL)
            return
        if 0 in self._ready and len(self._began) < self._count:
            for number in range(1, self._count):
                self._start(number)
        if len(self._ready) == self._count and not self._is_announced:
            self._is_announced = True
            supervision.ready(self._settings)
            log.warning("%d workers serve, watched over by process %d", self._count, os.getpid())
        if self._every_s and self._is_announced:
            supervision.feed_watchdog(self._settings)
        for number, at in list(self._due.items()):
            if at <= now:
                try:
                    self._start(number)
                except OSError as failure:  # the system has no process left: the others serve on
                    log.warning("Worker %d can't be started: %s", number, failure.strerror)
                    self._due[number] = now + self._pauses[number]
                else:
                    del self._due[number]

    def _start(self, number: int) -> None:
        is_replacement = number in self._began
        self._began[number] = time.monotonic()
        process = os.fork()
        if process == 0:
            os._exit(self._work(number, is_replacement))
        self._workers[process] = number

    def _work(self, number: int, is_replacement: bool) -> int:
        """Run the worker, which uses nothing of the supervisor's any more."""
        try:
            signal.set_wakeup_fd(-1)
            for each in (*_ENDING, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(each, signal.SIG_DFL)
            for descriptor in (self._told, self._alive, self._woken, self._wakes):
                os.close(descriptor)
            self._settings.adopt("pidfile", b"")
            self._settings.adopt("supervised", b"no")
            place = WorkerPlace(number, self._sockets.paths, is_replacement, self._tells, self._life)
            return self._serve(self._sockets.of(number), place)
        except BaseException:
            log.exception("Unexpected failure in worker %d", number)
            return 1
        finally:
            logging.shutdown()

    def _end(self) -> None:
        """Have all workers end."""
        if self._ending_since is None:
            self._ending_since = time.monotonic()
            self._due.clear()
            if self._is_announced:
                supervision.stopping(self._settings)
            self._pass_on(signal.SIGTERM)

    def _pass_on(self, number: signal.Signals) -> None:
        for process in self._workers:
            os.kill(process, number)
