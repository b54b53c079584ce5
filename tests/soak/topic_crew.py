"""The processes of the soak of topics: writers, followers that come and go, and servers that are killed; and whether
what they say adds up.

The promise: a follower gets every entry behind its start, once and in order. Of a topic that is trimmed meanwhile it
may lack some, and is told how many: exactly, or to within a thousand where it began, or came back, behind an entry that
was no longer there.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from patience import until
from ports import free_port

from tests.server.server_process import ServerProcess

ROOT = Path(__file__).parents[2]
SERVERS = 2
EMBEDDED_WRITERS, SERVED_WRITERS, FOLLOWERS = 2, 1, 4
ROLES = ("reader", "subscriber", "asyncio")
TOLD_TO_WITHIN = 1000
Id = tuple[int, int]


def number(text: str) -> Id:
    """An id that sorts."""
    ms, _, seq = text.partition("-")
    return int(ms), int(seq or 0)


@dataclass
class Life:
    """One worker."""

    role: str
    is_embedded: bool
    process: subprocess.Popen[bytes]
    page: Path
    said: Path

    @property
    def is_over(self) -> bool:
        return self.process.poll() is not None

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def fault(self) -> str | None:
        return f"{self.page.stem} failed: {self.said.read_text()[-3000:]}" if self.process.wait() else None


class TopicCrew:
    """Everybody, on one store."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.store = folder / "store"
        self._folder = folder
        self._stop_file = folder / "stop"
        self._dice = random.Random(seed)
        self._ports = [free_port() for _ in range(SERVERS)]
        self.servers = [self._server(at) for at in range(SERVERS)]
        self.kills = 0
        self.lives: list[Life] = []
        self.writers = [self._worker("writer", True) for _ in range(EMBEDDED_WRITERS)]
        self.writers += [self._worker("writer", False) for _ in range(SERVED_WRITERS)]
        self.followers = [self._follower() for _ in range(FOLLOWERS)]

    def step(self) -> None:
        """A server may die; followers who have had enough are followed by others."""
        if self._dice.random() < 0.1:
            self.replace_server(self._dice.randrange(SERVERS))
        for at, life in enumerate(self.followers):
            if life.is_over:
                self.followers[at] = self._follower()

    def replace_server(self, at: int) -> None:
        self.servers[at].process.kill()
        self.servers[at].process.wait()
        self.kills += 1
        self.servers[at] = self._server(at)

    def stop_writing(self) -> None:
        self._stop_file.touch()
        until(lambda: all(life.is_over for life in self.writers), "the end of all writers")

    def is_over(self) -> bool:
        return all(life.is_over for life in self.followers)

    def kill_all(self) -> None:
        for server in self.servers:
            server.process.kill()
            server.process.wait()
        for life in self.lives:
            life.kill()

    def _server(self, at: int) -> ServerProcess:
        folder = self._folder / f"server-{at}"
        folder.mkdir(exist_ok=True)
        return ServerProcess(folder, port=self._ports[at], store_folder=self.store)

    def _follower(self) -> Life:
        return self._worker(self._dice.choice(ROLES), self._dice.random() < 0.5)

    def _worker(self, role: str, is_embedded: bool) -> Life:
        where = "program" if is_embedded else "client"
        name = f"{role}-{where}-{len(self.lives)}"
        target = str(self.store) if is_embedded else f"redis://127.0.0.1:{self._dice.choice(self._ports)}"
        page, said = self._folder / f"{name}.page", self._folder / f"{name}.said"
        page.touch()
        words = [target, role, str(self._dice.getrandbits(32)), str(page), str(self._stop_file)]
        with said.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.topic_worker", *words],
                cwd=ROOT,
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.lives.append(Life(role, is_embedded, process, page, said))
        return self.lives[-1]


@dataclass
class Account:
    """What a page says."""

    wrote: dict[str, list[Id]] = field(default_factory=lambda: defaultdict(list))
    starts: dict[str, Id | None] = field(default_factory=dict)
    from_now: dict[str, bool] = field(default_factory=dict)
    """Whether it began with what was to come."""
    got: dict[str, list[Id]] = field(default_factory=lambda: defaultdict(list))
    lost: dict[str, int] = field(default_factory=lambda: defaultdict(int))


def account(page: Path) -> Account:
    told = Account()
    for line in page.read_text().splitlines():
        match json.loads(line):
            case ["wrote", topic, ids]:
                told.wrote[topic] += map(number, ids)
            case ["start", topic, start, from_now]:
                told.starts[topic], told.from_now[topic] = start and number(start), from_now
            case ["got", topic, entry_id]:
                told.got[topic].append(number(entry_id))
            case ["gap", topic, lost]:
                told.lost[topic] += lost
    return told


def faults(
    life: Life, told: Account, topic: str, there: list[Id], *, is_trimmed: bool = False, kills: int = 0
) -> list[str]:
    """What one follower did not get of one topic, or should not have got. `there`: all that was ever added. It may
    have come back as often as servers were killed."""
    got = told.got[topic]
    if not got:
        return []
    where = f"{life.page.stem} of {topic}"
    found = [] if got == sorted(set(got)) else [f"{where}: twice, or out of order"]
    start = told.starts[topic]
    begins = there.index(got[0]) if start is None else bisect_right(there, start)
    due = there[begins : bisect_right(there, got[-1])]
    missing, strange = sorted(set(due) - set(got)), sorted(set(got) - set(due))
    if strange:
        found.append(f"{where}: {strange[:5]} are not there, or before its start {start}")
    if not is_trimmed and (missing or told.lost[topic]):
        found.append(f"{where}: not {missing[:5]} ({len(missing)}), said to be {told.lost[topic]}, from {start}")
    if is_trimmed and life.role != "reader":
        allowed = 0 if life.is_embedded and told.from_now[topic] else TOLD_TO_WITHIN * (1 + kills)
        if abs(len(missing) - told.lost[topic]) > allowed:
            found.append(f"{where}: lost {len(missing)}, said to be {told.lost[topic]}, from {start}")
    return found
