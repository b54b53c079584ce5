"""Whether three keys are linearizable, all of them together, that are set, read, deleted, renamed, copied, given a time
to live, and changed by scripts two at once.

A key with a time to live may be found gone by anybody, whenever: the wall clock jumps. As it may jump back, one that
was found gone may be there again, until it has been removed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from tests.history.checks import linear
from tests.history.operations import OK, REFUSED, UNKNOWN, Operation

NAMES = "abc"
NO_SUCH_KEY = "no such key"


class Cell(NamedTuple):
    """What one key holds."""

    value: str | None
    may_go: bool
    """It has a time to live."""


GONE = Cell(None, False)
Space = tuple[Cell, ...]
START: Space = (GONE,) * len(NAMES)


def is_answer(one: Operation) -> bool:
    """Whether what looks like a refusal tells what there is."""
    return one.outcome == REFUSED and NO_SUCH_KEY in str(one.result)


def faults(operations: list[Operation]) -> Iterator[str]:
    """Of one space."""
    told = [replace(one, outcome=OK, result=NO_SUCH_KEY) if is_answer(one) else one for one in operations]
    found = linear.fault(told, START, step)  # type: ignore[arg-type]
    if found is not None:
        yield found


def step(space: Space, one: Operation) -> Iterator[Space]:
    """What may be after an operation, given what it has answered."""
    places = [NAMES.index(name) for name in one.value[0]]
    for views in product(*(_views(space[place]) for place in places)):
        seen = [value for value, _ in views]
        cells = list(space)
        for place, (_, cell) in zip(places, views, strict=True):
            cells[place] = cell
        result = _done(one, cells, places, seen)
        if one.outcome == UNKNOWN or result == one.result:
            yield tuple(cells)


def _views(cell: Cell) -> Iterator[tuple[str | None, Cell]]:
    """What may be seen of it, and what it is then."""
    yield cell.value, cell
    if cell.may_go:
        yield None, cell
        yield None, GONE


def _done(one: Operation, cells: list[Cell], places: list[int], seen: list[str | None]) -> object:
    """Do it, and answer as it would."""
    first, second = places[0], places[-1]
    match one.kind:
        case "set":
            _, value, may_go = one.value
            cells[first] = Cell(value, may_go)
            return None
        case "get":
            return seen[0]
        case "all":
            return seen
        case "take":
            if seen[0] is not None:
                cells[first] = GONE
            return seen[0]
        case "delete":
            for place, value in zip(places, seen, strict=True):
                if value is not None:
                    cells[place] = GONE
            return sum(value is not None for value in seen)
        case "rename":
            if seen[0] is None:
                return NO_SUCH_KEY
            cells[second], cells[first] = cells[first], GONE
            return None
        case "copy":
            if seen[0] is not None:
                cells[second] = cells[first]
            return int(seen[0] is not None)
        case "expire":
            if seen[0] is not None:
                cells[first] = Cell(seen[0], True)
            return int(seen[0] is not None)
        case "persist":
            had_end = seen[0] is not None and cells[first].may_go
            if had_end:
                cells[first] = Cell(seen[0], False)
            return int(had_end)
        case "both":
            cells[first] = cells[second] = Cell(one.value[1], False)
            return seen
        case "swap":
            cells[first], cells[second] = Cell(seen[1], False), Cell(seen[0], False)
            return seen
        case kind:
            raise AssertionError(kind)
