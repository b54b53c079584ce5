"""The processes of a soak: servers and workers on one store, killed and started again at random."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from patience import PATIENCE_S, until

from tests.soak.ledger import END_CHANNEL, read
from tests.soak.worker import CAREFUL, CONNECTION_LOST

ROOT = Path(__file__).parents[2]
ROLES = ("publisher", "subscriber", "asyncio", "both")
DURABLES = ("durable-x", "durable-y")
FAILPOINTS = ("publish-committed", "publish-rung", "join-locked", "join-bell-hung", "join-recorded", "leave-erased",
              "leave-bell-down", "reap-locked", "reap-erased", "reap-bell-down", "durable-committed", "durable-made",
              "durable-attached", "durable-held", "durable-detached")  # fmt: skip
SERVERS = 2
WORKERS = 6


@dataclass
class Life:
    """One incarnation."""

    name: str
    process: subprocess.Popen[bytes]
    said: Path
    may_be_killed: bool
    server: Life | None = None
    """Whose client it is."""
    port: int = 0
    role: str = ""

    @property
    def is_kept(self) -> bool:
        """A client of a durable subscriber, by redis-py: what that has read, and not handed over, is lost if it is
        killed."""
        return self.server is not None and self.name.startswith(DURABLES) and self.role != CAREFUL

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def stop(self) -> None:
        """It loses the processor, until it is killed or woken."""
        if not self.is_over:
            self.process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        if not self.is_over:
            self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.may_be_killed = True
        self.process.kill()
        self.process.wait()

    def stuck(self) -> str:
        """Where it is, as a worker says when it is aborted."""
        self.process.send_signal(signal.SIGABRT)
        self.process.wait(PATIENCE_S)
        return f"{self.name} does not end: {self.said.read_text()[-3000:]}"

    def fault(self) -> str | None:
        """Why it should not have ended as it did."""
        code = self.process.wait()
        if code == 0 or (code == -9 and self.may_be_killed):
            return None
        if code == CONNECTION_LOST and self.server is not None and self.server.may_be_killed:
            return None
        return f"{self.name} ended with {code}: {self.said.read_text()[-3000:]}"


class Crew:
    """Eight processes, each in a slot of its own that is filled again when it has ended."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.store = folder / "store"
        self.pages = folder / "pages"
        self.pages.mkdir()
        self._stop_file = folder / "stop"
        self._folder = folder
        self._dice = random.Random(seed)
        self._lives = 0
        self.servers: list[Life] = []
        self.workers: list[Life] = []
        self.ended: list[Life] = []
        self._stopped: Life | None = None

    def start(self) -> None:
        self.servers = [self._new_server() for _ in range(SERVERS)]
        self.workers = [self._new_worker(place) for place in range(WORKERS)]

    def step(self) -> None:
        """Kill somebody, perhaps; and let nobody's place stay empty."""
        time.sleep(self._dice.random() * 0.3)  # a pace, nothing is waited for
        if self._dice.random() < 0.5:
            victim = self._dice.choice(self.servers + self.workers * 3)
            if not victim.is_kept:
                victim.kill()
        self._stop_somebody()
        self._fill(self.servers, lambda place: self._new_server())
        self._fill(self.workers, self._new_worker)

    def _stop_somebody(self) -> None:
        """A client that does not read fills its kernel; then it goes on, or is killed."""
        if self._stopped is not None and self._dice.random() < 0.3:
            self._stopped.wake()
            self._stopped = None
        clients = [life for life in self.workers if life.server is not None]
        if self._stopped is None and clients:
            self._stopped = self._dice.choice(clients)
            self._stopped.stop()

    def _fill(self, slots: list[Life], new: Callable[[int], Life]) -> None:
        for place, life in enumerate(slots):
            if life.is_over:
                self.ended.append(life)
                slots[place] = new(place)

    def stop_publishing(self) -> None:
        """Publishers end, and those who do both go on reading."""
        if self._stopped is not None:
            self._stopped.wake()
        self._stop_file.touch()

    def drain(self) -> None:
        """Say the last message of all, now that nobody else publishes, until every worker has ended."""
        until(lambda: all(self._is_silent(life) for life in self.workers), "the end of all publishing")
        deadline = time.monotonic() + PATIENCE_S
        while not all(life.is_over for life in self.workers) and time.monotonic() < deadline:
            self.command("publish", "-s", str(self.store), END_CHANNEL, "all")  # again, for who subscribes only now
            for place, life in enumerate(self.workers[: len(DURABLES)]):
                if life.is_over and not read(self._page(life.name)).ended:
                    self.ended.append(life)
                    self.workers[place] = self._new_worker(place, is_last=True)
        self._wait_for(self.workers)

    def stop_servers(self) -> None:
        """Some are told, some are killed."""
        for life in self.servers:
            if self._dice.random() < 0.5:
                life.kill()
            elif not life.is_over:
                life.process.terminate()
        self._wait_for(self.servers)

    def kill_all(self) -> None:
        for life in self.servers + self.workers:
            if not life.is_over:
                life.kill()

    def faults(self) -> list[str]:
        """Of everybody's end."""
        return [fault for life in self.ended + self.workers + self.servers if (fault := life.fault())]

    def command(self, *words: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "rlite_pubsub", *words], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout

    def _is_silent(self, life: Life) -> bool:
        only_reads = life.name.startswith(("subscriber", "asyncio", "durable"))
        return only_reads or life.is_over or read(self._page(life.name)).silent

    def _page(self, name: str) -> Path:
        return self.pages / f"{name}.page"

    def _new_worker(self, place: int, *, is_last: bool = False) -> Life:
        role = (*DURABLES, "publisher")[place] if place <= len(DURABLES) else self._dice.choice(ROLES)
        name = self._name(role)
        alive = [life for life in self.servers if not life.is_over]
        server = self._dice.choice([None, *alive])
        target = str(self.store) if server is None else f"redis://127.0.0.1:{server.port}"
        page = self._page(name)
        page.touch()
        if role in DURABLES and server is not None and self._dice.random() < 0.5:
            role = CAREFUL
        words = ["-m", "tests.soak.worker", target, role, str(self._dice.getrandbits(32)), str(page)]
        life = self._new_life(name, [*words, str(self._stop_file)], 0.2 if server is None and not is_last else 0)
        life.server = server
        life.role = role
        return life

    def _new_server(self) -> Life:
        """One that listens; its worker-to-be may connect at once."""
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = int(probe.getsockname()[1])
            words = ["-m", "rlite_pubsub", "serve", "--port", str(port), "--dir", str(self.store)]
            life = self._new_life(self._name("server"), words, 0.2)
            life.port = port
            until(lambda: life.is_over or b"Ready to accept" in life.said.read_bytes(), life.name)  # noqa: B023
            if not life.is_over:
                return life
            self.ended.append(life)  # its failpoint came first

    def _new_life(self, name: str, words: list[str], fragility: float) -> Life:
        environment = dict(os.environ, PYTHONFAULTHANDLER="1")
        is_fragile = self._dice.random() < fragility
        if is_fragile:
            environment["RLITE_FAILPOINT"] = self._dice.choice(FAILPOINTS)
            name += f"-{environment['RLITE_FAILPOINT']}" if name.startswith("server") else ""
        said = self._folder / f"{name}.said"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *words], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        return Life(name, process, said, is_fragile)

    def _name(self, role: str) -> str:
        self._lives += 1
        return f"{role}-{self._lives}"

    def _wait_for(self, lives: list[Life]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not all(life.is_over for life in lives):
            if time.monotonic() > deadline:
                raise AssertionError("\n".join(life.stuck() for life in lives if not life.is_over))
            time.sleep(0.02)
