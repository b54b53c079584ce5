"""A shape of work, the figures it yields, and what each must reach."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from .contestant import OURS, REDIS, Server
from .traffic import Tally


class NotHere(Exception):
    """This machine lacks what a shape needs: it is not measured, which is nobody's failure."""


@dataclass(frozen=True)
class Effort:
    """How long one round lasts, and whether this is only a check that everything works."""

    seconds: float
    quick: bool = False
    entries: int = 5_000_000  # of the topic that a server is restarted with


class Reading(NamedTuple):
    """One figure of one round; where there is CPU time, per operation and as a share of the round.

    `waited` is the share of the round in which server or generator could have run and other processes had the core.
    """

    value: float
    cpu_us: float | None = None
    busy: float | None = None
    waited: float | None = None


@dataclass(frozen=True)
class Target:
    """The limit for our figure itself or for its ratio to Redis's; the figure's direction says on which side."""

    limit: float
    of_ratio: bool = True


@dataclass(frozen=True)
class Figure:
    """What one number of a shape means."""

    name: str
    unit: str
    higher_is_better: bool = True
    target: Target | None = None

    def meets(self, ours: float, ratio: float | None) -> bool | None:
        """None when there is no target or nothing to compare with. A ratio counts as it is printed, to two digits."""
        value = (ratio and round(ratio, 2)) if self.target and self.target.of_ratio else ours
        if self.target is None or value is None:
            return None
        return value >= self.target.limit if self.higher_is_better else value <= self.target.limit

    def target_text(self) -> str:
        if self.target is None:
            return ""
        sign = "≥" if self.higher_is_better else "≤"
        unit = "x" if self.target.of_ratio else f" {self.unit}"
        return f"{sign} {self.target.limit:g}{unit}"


class Shape(ABC):
    """Work that is done alike against every server; `run` is one round of it."""

    name: str
    sentence: str
    figures: tuple[Figure, ...]
    rounds_at_most: ClassVar[int] = 1000
    warms_up: ClassVar[bool] = True  # false: the server has done nothing yet when the round begins
    contestants: ClassVar[tuple[str, ...]] = (REDIS, OURS)
    needs_server: ClassVar[bool] = True  # false: ours is a folder (library.Folder) that programs open
    options: str = ""  # what both servers are started with, besides what they always are
    own_options: str = ""  # what ours is started with on top of these; {http_port} is filled in

    def options_of(self, contestant: str) -> str:
        """What a server of this name is started with."""
        return f"{self.options} {self.own_options}" if contestant == OURS else self.options

    @abstractmethod
    def run(self, server: Server, effort: Effort) -> tuple[Reading, ...]:
        """One reading for each of the figures, in their order."""


def command_reading(tally: Tally) -> Reading:
    """Commands a second, CPU per command."""
    return _reading(tally, tally.commands)


def delivery_reading(tally: Tally, delivery_bytes: int) -> Reading:
    """Deliveries a second, CPU per delivery."""
    return _reading(tally, tally.delivered_bytes // delivery_bytes)


def _reading(tally: Tally, operations: int) -> Reading:
    return Reading(
        operations / tally.seconds,
        tally.cpu_seconds / operations * 1e6,
        tally.cpu_seconds / tally.seconds,
        tally.waited_seconds / tally.seconds,
    )
