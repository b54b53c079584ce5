"""Whether a counter is linearizable: each addition of 1 answers with what it has made of it.

The answers say in which order the additions took place, so this is decided exactly: that order keeps to real time, no
number is answered twice, and each number that is missing has an addition of its own whose outcome is unknown and that
was asked for before anybody saw a higher number.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from tests.history.operations import OK, UNKNOWN, Operation


def faults(operations: list[Operation]) -> Iterator[str]:
    """Of one key."""
    added = [one for one in operations if one.kind == "add" and one.outcome == OK]
    seen = [one for one in operations if one.outcome == OK]
    by_number: dict[int, Operation] = {}
    for one in added:
        if one.result in by_number:
            yield f"{one}: answered already, to {by_number[one.result]}"
        by_number[one.result] = one
    yield from _out_of_order(seen)
    highest = max((one.result for one in seen), default=0)
    missing = [number for number in range(1, highest + 1) if number not in by_number]
    unknown = sorted(one.invoked_ns for one in operations if one.kind == "add" and one.outcome == UNKNOWN)
    deadlines = _first_seen_above(seen, missing)
    for place, (number, deadline_ns) in enumerate(zip(missing, deadlines, strict=True)):
        if place >= len(unknown) or unknown[place] > deadline_ns:
            yield f"{operations[0].key}: nobody has added what made it {number}"
            return


def _out_of_order(seen: list[Operation]) -> Iterator[str]:
    """A number that is lower than one which was seen before it was asked for (for an addition: or as high)."""
    over = sorted(seen, key=lambda one: one.completed_ns)
    at, highest = 0, None
    for one in sorted(seen, key=lambda one: one.invoked_ns):
        while at < len(over) and over[at].completed_ns < one.invoked_ns:
            if highest is None or over[at].result > highest.result:
                highest = over[at]
            at += 1
        if highest is not None and one.result < highest.result + (one.kind == "add"):
            yield f"{one}: behind {highest}"


def _first_seen_above(seen: list[Operation], numbers: list[int]) -> list[float]:
    """When each of these was there at the latest, by whoever saw it or a higher one."""
    over = sorted(seen, key=lambda one: -one.result)
    deadlines, at, first = [], 0, inf
    for number in reversed(numbers):
        while at < len(over) and over[at].result >= number:
            first = min(first, over[at].completed_ns)
            at += 1
        deadlines.append(first)
    return deadlines[::-1]
