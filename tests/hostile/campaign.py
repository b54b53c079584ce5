"""A campaign: attacks on one target, one after the other, each with dice of its own so that any can be played again."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

from victim import Found, Holds

WARM_UP = 300
"""Attacks: caches fill and modules are imported, once."""
LOOKED_EVERY = 100
BIRTHS = 5
"""So often a target is tried to be made: where it comes late the machine may have been too busy, and an hour's campaign
is not to end for that."""


class Target(Protocol):
    """What is attacked."""

    @property
    def holds(self) -> Holds: ...

    def attack(self, chance: Random) -> None:
        """Attack once. Raises Found, or whatever else must not be."""

    def check_memory(self) -> int:
        """How many bytes its own memory has grown since the first call. Raises Found."""

    def close(self) -> None: ...


@dataclass
class Outcome:
    """How it went."""

    attacks: int = 0
    found: list[str] = field(default_factory=list)
    growth_bytes: int = 0
    holds: Holds = field(default_factory=dict)


def run(
    name: str,
    make: Callable[[Path], Target],
    folder: Path,
    seed: int,
    *,
    seconds: float = 0.0,
    least: int = 0,
    first: int = 0,
    goes_on: bool = False,
    tell: Callable[[str], None] = print,
) -> Outcome:
    """At least so many attacks, and for so long. Ends with the first that finds something, unless it `goes_on`: then
    each goes against a new target."""
    outcome = Outcome()
    tell(f"{name}: seed {seed}")
    lives = 0
    target = _made(make, folder, lives, tell)
    until = time.monotonic() + seconds
    number = first
    since_birth = 0
    try:
        while number - first < least or time.monotonic() < until:
            try:
                target.attack(Random(f"{name}/{seed}/{number}"))
                if since_birth >= WARM_UP and since_birth % LOOKED_EVERY == 0:
                    outcome.growth_bytes = max(outcome.growth_bytes, target.check_memory())
            except Exception as failure:
                text = str(failure) if isinstance(failure, Found) else traceback.format_exc()
                story = f"{name}: seed {seed}, attack {number} (after {since_birth} on the same server): {text}"
                outcome.found.append(story)
                tell(story)
                if not goes_on:
                    break
                _take_holds(outcome, target)
                target.close()
                lives += 1
                target = _made(make, folder, lives, tell)
                since_birth = -1
            number += 1
            since_birth += 1
            outcome.attacks += 1
    finally:
        _take_holds(outcome, target)
        target.close()
    return outcome


def _take_holds(outcome: Outcome, target: Target) -> None:
    for what, hold in target.holds.items():
        outcome.holds[what] = max(hold, outcome.holds.get(what, hold))


def _made(make: Callable[[Path], Target], folder: Path, life: int, tell: Callable[[str], None]) -> Target:
    for birth in range(1, BIRTHS):
        try:
            return make(_new(folder, f"{life}.{birth}"))
        except AssertionError as failure:
            tell(f"not made at try {birth}: {failure}")
    return make(_new(folder, f"{life}.{BIRTHS}"))


def _new(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    return made
