"""The one loop that alternates: a round for each server in turn, then the next; medians at the end.

Every round has a server of its own, warmed up before it counts: what a start happens to bring (the layout of memory,
the order of descriptors) then differs from round to round, and does not favour one side for the whole run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from .client import WrongAnswer
from .contestant import OURS, REDIS, Contestant, Server, ServerFailed
from .library import start
from .shape import Effort, Figure, NotHere, Reading, Shape

FAILURES = (WrongAnswer, ServerFailed, OSError, subprocess.TimeoutExpired)
RATIOS = ("%", "times")
WARM_UP_SHARE = 0.2  # of a round, before it, not counted
DYING_S = 1.0  # a process that has closed its sockets may still be on its way out


@dataclass
class Result:
    """All counted rounds of one shape: for each server a list of rounds, or the reason why it has none."""

    shape: Shape
    rounds: dict[str, list[tuple[Reading, ...]]]
    failures: dict[str, str] = field(default_factory=dict)
    lacks: str = ""

    def figures(self) -> list[Comparison]:
        return [Comparison(figure, self._column(index)) for index, figure in enumerate(self.shape.figures)]

    def _column(self, index: int) -> dict[str, list[Reading]]:
        return {
            name: [] if name in self.failures else [each[index] for each in rounds]
            for name, rounds in self.rounds.items()
        }


@dataclass(frozen=True)
class Comparison:
    """One figure: the readings of each server, and what they come to."""

    figure: Figure
    readings: dict[str, list[Reading]]

    def value(self, name: str) -> float | None:
        return self._median(name, lambda reading: reading.value)

    def cpu_us(self, name: str) -> float | None:
        return self._median(name, lambda reading: reading.cpu_us)

    def waited(self, name: str) -> float | None:
        return self._median(name, lambda reading: reading.waited)

    def busy(self, name: str) -> float | None:
        return self._median(name, lambda reading: reading.busy)

    def ratio(self) -> float | None:
        return self._quotient(self.value(OURS), self.value(REDIS)) if self._comparable() else None

    def cpu_ratio(self) -> float | None:
        return self._quotient(self.cpu_us(OURS), self.cpu_us(REDIS))

    def spread(self) -> tuple[float, float] | None:
        """Lowest and highest ratio (or percentage of ours) of any one round: how far the median may be trusted."""
        if not self._comparable() or not self.readings.get(REDIS):
            ours_alone = [reading.value for reading in self.readings.get(OURS, [])]
            return (min(ours_alone), max(ours_alone)) if ours_alone else None
        pairs = zip(self.readings.get(OURS, []), self.readings.get(REDIS, []), strict=False)
        ratios = [ours.value / redis.value for ours, redis in pairs if redis.value]
        return (min(ratios), max(ratios)) if ratios else None

    def met(self) -> bool | None:
        ours = self.value(OURS)
        return None if ours is None else self.figure.meets(ours, self.ratio())

    def _comparable(self) -> bool:
        """A percentage is a ratio already, and near zero: the quotient of two of them says nothing."""
        return self.figure.unit not in RATIOS

    def _median(self, name: str, part: Callable[[Reading], float | None]) -> float | None:
        values = [value for reading in self.readings.get(name, []) if (value := part(reading)) is not None]
        return median(values) if values else None

    @staticmethod
    def _quotient(ours: float | None, redis: float | None) -> float | None:
        return ours / redis if ours is not None and redis else None


def compare(
    shape: Shape, contestants: Sequence[Contestant], effort: Effort, rounds: int, progress: Callable[[str], None]
) -> Result:
    """Who begins changes with every round. A server that fails once sits out the rest of this shape."""
    contestants = [contestant for contestant in contestants if contestant.name in shape.contestants]
    result = Result(shape, {contestant.name: [] for contestant in contestants})
    for number in range(min(rounds, shape.rounds_at_most)):
        for contestant in contestants if number % 2 == 0 else reversed(contestants):
            if contestant.name in result.failures:
                continue
            progress(f"{shape.name}, round {number + 1}: {contestant.name}")
            try:
                with start(contestant, shape) as server:
                    result.rounds[contestant.name].append(_measure(shape, server, effort))
            except NotHere as lacking:
                return Result(shape, {name: [] for name in result.rounds}, lacks=str(lacking))
            except FAILURES as failure:
                result.failures[contestant.name] = f"{type(failure).__name__}: {failure}"
    return result


def _measure(shape: Shape, server: Server, effort: Effort) -> tuple[Reading, ...]:
    try:
        if shape.warms_up and not effort.quick:
            shape.run(server, replace(effort, seconds=effort.seconds * WARM_UP_SHARE))
        server.settle()
        readings = shape.run(server, effort)
        server.check()
        return readings
    except FAILURES:
        server.check(patience_s=DYING_S)  # a server that has died explains its closed connections
        raise
