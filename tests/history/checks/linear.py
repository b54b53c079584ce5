"""Whether operations on one thing, whose meaning a model tells, are linearizable: there is an order of them that keeps
to real time and in which each answers what it did.

By Lowe's just-in-time linearization (Testing for Linearizability, 2017): time goes by, and all that may be so is kept,
each time what a thing may be and which of the operations under way have taken place. When one is over, it has taken
place in all that is kept, perhaps behind others that are under way. Where nothing is left there is no such order. An
operation of unknown outcome is under way until the end, and may never take place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from math import inf
from typing import NamedTuple

from tests.history.operations import OK, UNKNOWN, Operation

State = Hashable
Step = Callable[[State, Operation], Iterable[State]]
"""What may be after an operation; nothing where it can't have answered as it did."""
MOST = 200_000
"""So much may be so at a time; what is beyond can't be told."""


class _MayBe(NamedTuple):
    state: State
    done: frozenset[int]
    """Operations under way that have taken place."""


def fault(operations: Iterable[Operation], start: State, step: Step) -> str | None:
    """The first operation behind which there is no order. None: there is one, or too many that may be."""
    told = [one for one in operations if one.outcome in (OK, UNKNOWN)]
    moments = [(one.invoked_ns, 0, number) for number, one in enumerate(told)]
    moments += [(one.completed_ns, 1, number) for number, one in enumerate(told) if one.completed_ns < inf]
    may_be = {_MayBe(start, frozenset())}
    under_way: set[int] = set()
    for _, is_over, number in sorted(moments):
        if not is_over:
            under_way.add(number)
            continue
        found = _with(may_be, number, under_way, told, step)
        if found is None:
            return None
        if not found:
            states = sorted({str(one.state) for one in may_be})[:3]
            return f"{told[number]}: in no order; before it there may have been {' or '.join(states)}"
        may_be = {_MayBe(state, done - {number}) for state, done in found}
        under_way.remove(number)
    return None


def _with(
    may_be: set[_MayBe], number: int, under_way: set[int], told: list[Operation], step: Step
) -> set[_MayBe] | None:
    """All that may be once this operation has taken place; None: too much."""
    found, seen, left = set(), set(may_be), list(may_be)
    while left:
        one = left.pop()
        if number in one.done:
            found.add(one)
            continue
        for each in under_way - one.done:
            for state in step(one.state, told[each]):
                new = _MayBe(state, one.done | {each})
                if new not in seen:
                    seen.add(new)
                    left.append(new)
        if len(seen) > MOST:
            return None
    return found
