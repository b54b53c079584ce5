"""The hand-over of a durable subscriber from life to life, explored: every choice of who does the next step is made by
a `Chooser`, and is known afterwards. Nothing acknowledged to a publisher may be missed by all lives together."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from modelled_line import Line, Way
from modelled_process import Clock, Process

from rlite_pubsub.durable.feed import KEPT_SECONDS
from rlite_pubsub.engine.turn import end_turn
from rlite_pubsub.server.connection import Connection
from rlite_pubsub.storage.store import Store

Ending = str
"""How a client ends: "close"; "shut", and closes later; "end" does so once it has read all that is on its way, with all
that was published until then; "never"."""
FINALE_ROUNDS = 400


class Step(NamedTuple):
    """Something that may happen next."""

    name: str
    do: Callable[[], None]
    actor: object = None
    """Whose step it is; to go on with the same actor is no change."""
    weight: int = 10
    """How often dice choose it."""


class Chooser:
    """Chooses by dice, or as it is told; what it has chosen is in `chosen`."""

    def __init__(self, dice: random.Random | None = None, told: Sequence[int] = ()) -> None:
        self._dice = dice
        self._told = list(told)
        self.chosen: list[int] = []
        self.sizes: list[int] = []

    def varied(self, limit: int) -> Iterator[list[int]]:
        """Those that differ from what was chosen by one more choice that is not the first, behind all that was told;
        at most `limit` such choices in all."""
        if sum(choice != 0 for choice in self._told) >= limit:
            return
        for at in range(len(self._told), len(self.chosen)):
            for choice in range(1, self.sizes[at]):
                yield [*self.chosen[:at], choice]

    def choose(self, weights: Sequence[int]) -> int:
        size = len(weights)
        at = len(self.chosen)
        if at < len(self._told):
            choice = self._told[at]
        else:
            choice = self._dice.choices(range(size), weights)[0] if self._dice is not None else 0
        assert choice < size, "the schedule is of another program"
        self.chosen.append(choice)
        self.sizes.append(size)
        return choice


@dataclass
class Life:
    """One connection of the durable subscriber."""

    number: int
    ending: Ending
    line: Line | None = None
    heard: list[int] = field(default_factory=list)
    has_ended: bool = False

    @property
    def is_confirmed(self) -> bool:
        """The confirmation of its subscription has left the server."""
        return self.line is not None and self.line.has_been_sent

    def read(self, limit: int | None = None) -> None:
        assert self.line is not None
        self.heard += [int(payload.partition(b":")[0]) for payload in self.line.read(limit)]


@dataclass(frozen=True)
class Scope:
    """How large a world is."""

    way: Way
    servers: int = 1
    lives: tuple[Ending, ...] = ("close",)
    messages: int = 2
    payload_bytes: int = 10
    ticks: int = 3
    kills: int = 0
    takes_over: bool = False
    """A life may begin while the one before it has not begun to end."""
    eagerness: int = 10
    """How often dice choose that a client reads; with 0 none does."""
    is_calm: bool = False
    """Nothing is published, and nobody connects, before a server has noticed that a client has closed."""
    steps: int = 400
    """After so many the rest comes in order."""


class World:
    """One store, servers on it, a publisher, a durable subscriber's lives one after the other."""

    def __init__(self, folder: Path, scope: Scope, chooser: Chooser, clock: Clock) -> None:
        self.scope = scope
        self.trace: list[str] = []
        self._chooser = chooser
        self._clock = clock
        self._store = Store.open(folder, quota_bytes=64 << 20, durability="no")
        self._processes = 0
        self.servers = [self._new_server() for _ in range(scope.servers)]
        self.ended: list[Process] = []
        self.publisher = Process("publisher", self._store, clock)
        self.lives = [Life(number, ending) for number, ending in enumerate(scope.lives)]
        self._ticks_left, self._looks_left, self._kills_left = scope.ticks, scope.ticks, scope.kills
        self._is_held = False  # the subscriber is known to hold its name
        self._published = 0
        self.acknowledged: list[int] = []
        self._connect(self.lives[0], self.servers[0])

    def close(self) -> None:
        for process in [*self.servers, *self.ended, self.publisher]:
            process.end()
        for life in self.lives:
            if life.line is not None:
                life.line.close()
        self._store.close()

    # -- exploring

    def explore(self) -> None:
        """Let things happen as they are chosen, until nothing is left to happen."""
        last: object = None
        for _ in range(self.scope.steps):
            steps = self._steps()
            if not steps:
                return
            steps.sort(key=lambda step: step.actor is not last or step.actor is None)  # to go on is the first choice
            step = steps[self._chooser.choose([step.weight for step in steps])]
            self.trace.append(step.name)
            last = step.actor
            step.do()

    def finale(self) -> None:
        """All that is under way comes to its end, and a last life hears the rest."""
        for process in [*self.servers, self.publisher]:
            process.finish()
        while self._published < self.scope.messages:
            self._begin_publish()
            self.publisher.finish()
        for life in self.lives:
            if life.line is not None and life.ending != "never" and not life.has_ended:
                life.read()
                life.line.close_here()
        while not self._may_begin:
            self._settle()
        last = Life(len(self.lives), "never")
        self.lives.append(last)
        self._connect(last, self.servers[-1])
        self.servers[-1].finish()
        self._is_held = True
        self._begin_publish()
        self.publisher.finish()
        for _ in range(FINALE_ROUNDS):
            self._settle()
            if last.heard[-1:] == [self._published]:
                break

    def missed(self) -> list[int]:
        """What was acknowledged and no life has heard."""
        heard = {number for life in self.lives for number in life.heard}
        return [number for number in self.acknowledged if number not in heard]

    def repeated(self) -> list[int]:
        """What more than one life has heard."""
        heard = [number for life in self.lives for number in life.heard]
        return sorted({number for number in heard if heard.count(number) > 1})

    def out_of_order(self) -> list[list[int]]:
        """Lives that have heard something twice, or out of order."""
        return [life.heard for life in self.lives if life.heard != sorted(set(life.heard))]

    def _settle(self) -> None:
        """A little time passes, and everybody does what there is to do."""
        self._clock.now_s += KEPT_SECONDS / 4
        for server in self.servers:
            server.finish()
            server.begin(server.tick)
            server.finish()
            for line, connection in list(server.lines):
                for work in self._turns_for(server, line, connection):
                    server.begin(work)
                    server.finish()
        for life in self.lives:
            if life.line is not None:
                self._is_held = self._is_held or life.is_confirmed
                while life.line.is_travelling:
                    life.line.travel()
                if not life.line.is_closed:
                    life.read()
        self.servers = [server for server in self.servers if not server.is_dead]

    # -- what may happen

    def _steps(self) -> list[Step]:
        steps: list[Step] = []
        self._is_held = self._is_held or self.lives[0].is_confirmed
        for server in self.servers:
            if server.is_busy:
                steps.append(Step(f"{server.name} goes on", server.go_on, server))
            else:
                steps += self._turns(server)
            if self._kills_left:
                steps.append(Step(f"{server.name} is killed", lambda server=server: self._kill(server), None, 1))  # type: ignore[misc]
        if self.publisher.is_busy:
            steps.append(Step("publisher goes on", self.publisher.go_on, self.publisher))
        elif self._published < self.scope.messages and self._may_begin:
            steps.append(Step("publish", self._begin_publish, self.publisher))
        for life in self.lives:
            steps += self._steps_of(life)
        if self._ticks_left and self._may_pass:
            steps.append(Step("time passes", self._pass_time, None, 2))
        return steps

    def _turns(self, server: Process) -> list[Step]:
        steps = []
        if self._looks_left:
            steps.append(Step(f"{server.name} looks around", lambda: self._look_around(server), None, 1))
        if server.is_rung:
            steps.append(Step(f"{server.name} hears", lambda: server.begin(server.hear), server))
        if server.wants_turn:
            steps.append(Step(f"{server.name} takes a turn", lambda: self._extra_turn(server), server))
        for line, connection in server.lines:
            for work in self._turns_for(server, line, connection):
                steps.append(  # noqa: PERF401
                    Step(f"{server.name} looks at {connection.id}", lambda work=work: server.begin(work), server)  # type: ignore[misc]
                )
        return steps

    def _turns_for(self, server: Process, line: Line, connection: Connection) -> list[Callable[[], None]]:
        if connection.fd < 0 or line.is_closed_by_server:
            return []
        found: list[Callable[[], None]] = []
        if line.events:
            found.append(lambda: server.look_at(line, connection))
        if connection.outbox.backlog is not None and line.is_writable:
            found.append(lambda: server.drain(connection))
        return found

    def _steps_of(self, life: Life) -> list[Step]:
        line = life.line
        if line is None:
            before = self.lives[life.number - 1]
            is_next = before.line is not None and (self.scope.takes_over or before.line.is_shut or before.has_ended)
            return [
                Step(f"life {life.number} connects to {server.name}", self._connecting(life, server), None, 1)
                for server in self.servers
                if is_next and self._may_begin and not server.is_busy
            ]
        steps = []
        if line.is_travelling:
            steps.append(Step(f"line {life.number} carries", line.travel))
            if len(line.in_flight) > 1:
                steps.append(Step(f"line {life.number} carries a part", lambda: line.travel(len(line.in_flight) // 2)))
        if life.has_ended:
            return steps
        if line.unread and self.scope.eagerness:
            eagerness, half = self.scope.eagerness, len(line.unread) // 2
            steps.append(Step(f"life {life.number} reads", life.read, None, eagerness))
            if half:
                steps.append(Step(f"life {life.number} reads a part", lambda: life.read(half), None, eagerness))
        if line.is_shut or life.ending == "close" or line.is_over:
            steps.append(Step(f"life {life.number} closes", lambda: self._close(life), None, 2))
        elif life.ending == "shut" or (life.ending == "end" and self._has_all(life)):
            steps.append(Step(f"life {life.number} shuts", line.shut, None, 1))
        return steps

    def _begin_publish(self) -> None:
        self._published += 1
        number = self._published
        is_held = self._is_held
        payload = b"%d:" % number + b"." * self.scope.payload_bytes

        def work() -> None:
            self.publisher.publish(payload)
            end_turn(self.publisher.delivery.agenda)
            if is_held:
                self.acknowledged.append(number)

        self.publisher.begin(work)

    def _connect(self, life: Life, server: Process) -> None:
        line = life.line = Line(self.scope.way, b"*2\r\n$9\r\nSUBSCRIBE\r\n$4\r\nnews\r\n")
        server.begin(lambda: server.accept(line))

    @property
    def _may_begin(self) -> bool:
        """Something new."""
        pairs = [pair for server in self.servers for pair in server.lines]
        return not (
            self.scope.is_calm
            and any((line.is_shut or line.is_closed) and connection.fd >= 0 for line, connection in pairs)
        )

    def _connecting(self, life: Life, server: Process) -> Callable[[], None]:
        return lambda: self._connect(life, server)

    def _close(self, life: Life) -> None:
        assert life.line is not None
        life.line.close_here()
        life.has_ended = True

    def _look_around(self, server: Process) -> None:
        self._looks_left -= 1
        server.begin(server.tick)

    def _has_all(self, life: Life) -> bool:
        """A client that knows how many there are, and ends."""
        assert life.line is not None
        is_idle = not life.line.unread and not life.line.in_flight and not self.publisher.is_busy
        heard = {number for other in self.lives for number in other.heard}
        return is_idle and self._published > 0 and heard >= set(range(1, self._published + 1))

    def _extra_turn(self, server: Process) -> None:
        server.wants_turn = False
        server.begin(lambda: None)

    def _kill(self, server: Process) -> None:
        self._kills_left -= 1
        server.kill()
        self.ended.append(server)
        self.servers[self.servers.index(server)] = self._new_server()

    def _new_server(self) -> Process:
        self._processes += 1
        return Process(f"server {self._processes}", self._store, self._clock)

    @property
    def _may_pass(self) -> bool:
        """From elsewhere, time passes only where what is promised is: who does not read within a second, or ends in two
        steps that are further apart, may lose something."""
        if self.scope.way != "elsewhere":
            return True
        lines = [life.line for life in self.lives if life.line is not None and not life.line.is_closed_by_server]
        return not any(line.unread or line.is_half_ended for line in lines)

    def _pass_time(self) -> None:
        self._ticks_left -= 1
        self._clock.now_s += KEPT_SECONDS * 0.6
        for server in self.servers:
            if not server.is_busy:
                server.begin(server.tick)
