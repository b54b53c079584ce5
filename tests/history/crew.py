"""Two servers, two programs, their clients and subscribers on one store, and what happens to them: kill -9, SIGSTOP and
SIGCONT, jumps of the wall clock, a full disk, all by one dice.

Processes are forked from this one, which has imported everything and opened nothing: so a life begins in milliseconds.
What happens next waits for so many operations of the crew, not for a time, as far as anything goes on at all.
"""

from __future__ import annotations

import ctypes
import faulthandler
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rlite_pubsub.storage import failpoint
from tests.history import roles
from tests.history.watchdog import TELL, Slots, Watchdog
from tests.patience import PATIENCE_S, until
from tests.server.disk import fill
from tests.soak import ledger
from tests.soak.worker import CONNECTION_LOST

SERVERS = 2
STREAM = "stream"
SPEAKS_HTTP = 1
"""Which of the servers; its loop is another then."""
CLIENTS = ("program", "program", "socket", "library")
READERS = ("durable-x", "durable-y", "subscriber", "asyncio", STREAM)
DURABLES = ("durable-x-", "durable-y-")
FAILPOINTS = (
    "publish-committed", "publish-rung", "join-locked", "join-bell-hung", "join-recorded", "leave-erased",
    "leave-bell-down", "reap-locked", "reap-erased", "reap-bell-down", "durable-committed", "durable-made",
    "durable-held", "durable-detached", "durable-attached", "changed-keys-committed", "wait-recorded",
    "change-committed", "checkpoint-pinned", "checkpoint-synced", "checkpoint-saved",
)  # fmt: skip
DISK_BYTES = 256 << 20
HOUR_S = 3600.0
CLOCKS_WRONG_BY_S = (0.0, 0.0, 1.0, -1.0, HOUR_S, -HOUR_S, 24 * HOUR_S, -24 * HOUR_S)
LONGEST_WAIT_S = 1.0


@dataclass(eq=False)
class Life:
    """One process."""

    name: str
    pid: int
    said: Path
    server: Life | None = None
    """Whose client it is."""
    may_be_killed: bool = False
    status: int | None = None
    is_stopped: bool = False

    @property
    def is_over(self) -> bool:
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def send(self, number: signal.Signals) -> None:
        if not self.is_over:
            os.kill(self.pid, number)
            self.is_stopped = number == signal.SIGSTOP

    def kill(self) -> None:
        self.may_be_killed = True
        self.send(signal.SIGKILL)
        until(lambda: self.is_over, f"the end of {self.name}")

    def fault(self) -> str | None:
        """Why it should not have ended as it did."""
        assert self.status is not None
        if self.status in (0, roles.GAVE_UP) or (self.status == -signal.SIGKILL and self.may_be_killed):
            return None
        if self.status == -signal.SIGTERM:  # a server that was told to end before it listened
            return None
        if self.status == CONNECTION_LOST and self.server is not None and self.server.may_be_killed:
            return None
        return f"{self.name} ended with {self.status}: {self.said.read_text()[-3000:]}"


class Crew:
    """Everybody, and what befalls them."""

    def __init__(self, folder: Path, disk: Path, seed: str, clock: mmap.mmap, *, may_fill: bool) -> None:
        """`disk`: the store is on it, and if it may be filled it is a small one."""
        self.folder, self.store = folder, disk / "store"
        self.pages, self.readers_pages, self.streams_pages = (folder / it for it in ("pages", "readers", "streams"))
        self.kills = self.stops = self.jumps = self.fillings = 0
        self._disk, self._clock, self._may_fill = disk, clock, may_fill
        self._dice = random.Random(seed)
        self._stop_file = folder / "stop"
        self._filled_file = folder / "filled"  # made before the disk is full for the first time
        self._slots = Slots(len(CLIENTS))
        self._watchdog = Watchdog(self._slots, lambda: self.everybody, self.store)
        self._lives = 0
        self._ballast: Path | None = None
        self.ended: list[Life] = []
        self.servers: list[Life] = []
        self.clients: list[Life] = []
        self.readers: list[Life] = []
        for made in (self.pages, self.readers_pages, self.streams_pages, folder / "said"):
            made.mkdir()

    @property
    def everybody(self) -> list[Life]:
        return self.servers + self.clients + self.readers

    def start(self) -> None:
        self._whole("prepare", lambda: roles.prepare(self.store))
        self.servers = [self._new_server(place) for place in range(SERVERS)]
        self.clients = [self._new_client(place) for place in range(len(CLIENTS))]
        self.readers = [self._new_reader(place) for place in range(len(READERS))]

    # -- what happens

    def befall(self) -> None:
        """One thing happens to somebody, and nobody's place stays empty."""
        self._pace(self._dice.choice([5, 20, 60]))
        dice = self._dice.random()
        if dice < 0.55:
            self._dice.choice(self.servers * 2 + self.clients * 2 + self.readers).kill()
        elif dice < 0.75:
            self._stop_somebody()
        elif dice < 0.9:
            self._jump(self._dice.choice(CLOCKS_WRONG_BY_S))
        elif self._may_fill:
            self._fill_the_disk()
        self._replace()

    def _stop_somebody(self) -> None:
        """It loses the processor; meanwhile another may die; then it goes on, or dies as it stands."""
        victim = self._dice.choice(self.everybody)
        victim.send(signal.SIGSTOP)
        self.stops += 1
        self._pace(self._dice.choice([1, 20]), longest_s=self._dice.choice([0.05, 0.3, 1.5]))
        if self._dice.random() < 0.3:
            self._dice.choice(self.everybody).kill()
        if self._dice.random() < 0.3:
            victim.kill()
        else:
            victim.send(signal.SIGCONT)

    def _jump(self, wrong_by_s: float) -> None:
        self._clock[:8] = struct.pack("<d", wrong_by_s)
        self.jumps += 1

    def _fill_the_disk(self) -> None:
        if self._ballast is None:
            self._filled_file.touch()
            self._ballast = fill(self._disk)
            self.fillings += 1
            self._pace(self._dice.choice([5, 40]), longest_s=0.3)
        self._empty_the_disk()

    def _empty_the_disk(self) -> None:
        if self._ballast is not None:
            self._ballast.unlink()
            self._ballast = None

    def _pace(self, operations: int, longest_s: float = LONGEST_WAIT_S) -> None:
        before, deadline = self._slots.done, time.monotonic() + longest_s
        while self._slots.done < before + operations and time.monotonic() < deadline:
            time.sleep(0.002)
        self._watchdog.look()

    def _replace(self) -> None:
        for slots, new in (
            (self.servers, self._new_server), (self.clients, self._new_client), (self.readers, self._new_reader)
        ):  # fmt: skip
            for place, life in enumerate(slots):
                if life.is_over:
                    self._bury(life)
                    slots[place] = new(place)

    def _bury(self, life: Life) -> None:
        self.ended.append(life)
        self.kills += life.status == -signal.SIGKILL

    # -- the end

    def finish(self) -> None:
        """Everybody ends in peace, and what is there then is written down."""
        self._empty_the_disk()
        self._jump(0.0)
        for life in self.everybody:
            if life.is_stopped:
                life.send(signal.SIGCONT)
        self._replace()
        self._stop_file.touch()
        self._wait_for(self.clients)
        self._say_the_end()
        for life in self.servers:
            if self._dice.random() < 0.5:
                life.kill()
            else:
                life.send(signal.SIGTERM)
        self._wait_for(self.servers)
        for life in self.everybody:
            self._bury(life)
        self._whole("look", lambda: roles.look(self.store, self.pages / "last.page", self.folder / "proven"))

    def _say_the_end(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not all(life.is_over for life in self.readers):
            if time.monotonic() > deadline:
                raise AssertionError("\n".join(self._stuck(life) for life in self.readers if not life.is_over))
            self._whole("end", lambda: roles.say_the_end(self.store))  # again, for who subscribes only now
            time.sleep(0.05)
            for place, life in enumerate(self.servers):  # at a failpoint: who follows events would come back to nobody
                if life.is_over:
                    self._bury(life)
                    self.servers[place] = self._new_server(place, is_last=True)
            for place in range(len(DURABLES)):
                life = self.readers[place]
                if life.is_over and not ledger.read(self.readers_pages / f"{life.name}.page").ended:
                    self._bury(life)
                    self.readers[place] = self._new_reader(place, is_last=True)

    def _wait_for(self, lives: list[Life]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not all(life.is_over for life in lives):
            if time.monotonic() > deadline:
                stuck = [life for life in dict.fromkeys([*lives, *self.servers]) if not life.is_over]
                raise AssertionError("\n".join(self._stuck(life) for life in stuck))
            self._watchdog.look()
            time.sleep(0.005)

    def _stuck(self, life: Life) -> str:
        life.send(signal.SIGABRT)
        until(lambda: life.is_over)
        return f"{life.name} does not end: {life.said.read_text()[-3000:]}"

    def kill_all(self) -> None:
        for life in self.everybody:
            life.kill()

    # -- lives

    def _new_server(self, place: int, *, is_last: bool = False) -> Life:
        address = self.folder / f"server-{place}"
        port = address.with_suffix(".new")
        port.write_text(str(_free_port()))
        port.rename(address)
        if place == SPEAKS_HTTP:
            port.write_text(str(_free_port()))
            port.rename(address.with_suffix(roles.HTTP))
        said = self.folder / "said" / f"server-{place}.log"
        fragility = 0 if is_last else 0.15
        return self._fork("server", lambda name: roles.serve_store(self.store, address, said), fragility=fragility)

    def _new_client(self, place: int) -> Life:
        way = CLIENTS[place]
        at = self._dice.randrange(SERVERS)
        dice = random.Random(self._dice.getrandbits(64))
        self._slots.rest(place)

        def work(name: str) -> int:
            page, address, web = self.pages / f"{name}.page", self.folder / f"server-{at}", self._web
            stop, slots = self._stop_file, self._slots
            return roles.ask_at_random(way, self.store, address, web, page, self._lives, dice, stop, slots, place)

        return self._fork(way, work, fragility=0.15 if way == "program" else 0)

    @property
    def _web(self) -> Path:
        return self.folder / f"server-{SPEAKS_HTTP}"

    def _new_reader(self, place: int, *, is_last: bool = False) -> Life:
        if READERS[place] == STREAM:
            return self._fork(STREAM, lambda name: roles.follow_events(self._web, self.streams_pages / f"{name}.page"))
        role, seed = READERS[place], self._dice.getrandbits(32)
        at = self._dice.choice([None, *range(SERVERS)])
        is_alive = at is not None and not self.servers[at].is_over
        target = f"redis://127.0.0.1:{(self.folder / f'server-{at}').read_text()}" if is_alive else str(self.store)

        def work(name: str) -> int:
            page = self.readers_pages / f"{name}.page"
            page.touch()
            return roles.listen(role.partition("-")[0], target, page, seed, self._stop_file, self._filled_file)

        life = self._fork(role, work, fragility=0 if is_alive or is_last else 0.15)
        life.server = self.servers[at] if is_alive and at is not None else None
        return life

    def _whole(self, name: str, work: Callable[[], int]) -> None:
        """One that is not disturbed."""
        life = self._fork(name, lambda _: work())
        self._wait_for([life])
        if fault := life.fault():
            raise AssertionError(fault)

    def _fork(self, role: str, work: Callable[[str], int], fragility: float = 0.0) -> Life:
        self._lives += 1
        name = f"{role}-{self._lives}"
        said = self.folder / "said" / name
        armed = self._dice.choice(FAILPOINTS) if self._dice.random() < fragility else None
        pid = os.fork()
        if pid:
            return Life(name, pid, said, may_be_killed=armed is not None)
        status = 1
        try:
            _die_with_parent()
            output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            faulthandler.enable()
            faulthandler.register(TELL)
            failpoint._ARMED = armed
            status = work(name)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def own_disk(folder: Path) -> bool:
    """Mount a small disk there that only this process and its children see, and that ends with them. False if that
    is not allowed."""
    CLONE_NEWNS = 0x00020000
    if ctypes.CDLL(None).unshare(CLONE_NEWNS):
        return False
    for words in (["--make-rprivate", "/"], ["-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]):
        if subprocess.run(["mount", *words], stderr=subprocess.DEVNULL).returncode:
            return False
    return True
