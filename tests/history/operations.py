"""A history: what each client asked for, when, and what became of it.

Every client appends to a page of its own, one line for each thing, in one write: a kill loses at most what it was about
to say. Times are of CLOCK_MONOTONIC, which all processes of a machine share, and which no jump of the wall clock moves.

    ?  number, when, kind, key, value       asked for
    =  number, when, outcome, result        ok, or refused: then nothing of it may have happened
    ~  why                                  the connection broke: what was asked for last may happen at any later time

What has no second line is *unknown*, as what was asked for on a connection that broke: it has happened, once, or never.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


@dataclass
class Operation:
    """One request and its outcome."""

    client: str
    number: int
    kind: str
    key: str
    value: Any
    invoked_ns: float
    completed_ns: float = inf
    outcome: str = UNKNOWN
    result: Any = None

    def precedes(self, other: Operation) -> bool:
        """It was over when the other began."""
        return self.completed_ns < other.invoked_ns

    def __str__(self) -> str:
        return f"{self.client}#{self.number} {self.kind} {self.key} {self.value!r} -> {self.outcome} {self.result!r}"


class Page:
    """A client's own. Each line is one write."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def asked(self, number: int, kind: str, key: str, value: Any) -> None:
        self._write("?", number, time.monotonic_ns(), kind, key, value)

    def answered(self, number: int, outcome: str, result: Any) -> None:
        self._write("=", number, time.monotonic_ns(), outcome, result)

    def lost(self, why: str) -> None:
        self._write("~", why)

    def _write(self, *words: object) -> None:
        os.write(self._descriptor, (json.dumps(words) + "\n").encode())


def read(pages: Iterable[Path]) -> list[Operation]:
    """All operations of all pages, in the order in which they were asked for."""
    found: list[Operation] = []
    for page in pages:
        asked: dict[int, Operation] = {}
        for line in page.read_text().splitlines(keepends=True):
            if not line.endswith("\n"):
                continue  # cut off by a kill
            match json.loads(line):
                case ["?", number, when_ns, kind, key, value]:
                    asked[number] = Operation(page.stem, number, kind, key, value, when_ns)
                case ["=", number, when_ns, outcome, result]:
                    one = asked[number]
                    one.completed_ns, one.outcome, one.result = when_ns, outcome, result
                case ["~", _]:
                    pass
                case words:
                    raise AssertionError(f"{page} says {words}")
        found += asked.values()
    return sorted(found, key=lambda one: one.invoked_ns)
