"""Whether what was put into a queue, a set or a sorted set was taken once, or is there at the end.

Each value is put once. By Henzinger, Sezgin and Vafeiadis (Aspect-Oriented Linearizability Proofs, 2013) a queue is
linearizable if nothing is taken that was not put there before, nothing is taken twice, nothing overtakes, and nobody
finds it empty while something is surely in it. A value that is missing needs a taker of its own whose outcome is
unknown; of one that is not missing all that can be said is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from tests.history.operations import OK, REFUSED, UNKNOWN, Operation


@dataclass
class _Item:
    value: str
    put: Operation
    taken: Operation | None = None
    rests: bool = False

    @property
    def is_missing(self) -> bool:
        return self.taken is None and not self.rests


def faults(operations: list[Operation], *, is_queue: bool) -> Iterator[str]:
    """Of one key; the last operation tells what rests."""
    items = {value: _Item(value, one) for one in operations if one.kind == "put" for value in one.value}
    (rest,) = (one for one in operations if one.kind == "rest")
    yield from _taken_wrongly(operations, items, rest)
    lost_takes = sorted(one.invoked_ns for one in operations if one.kind == "take" and one.outcome == UNKNOWN)
    missing = _missing(items)
    if len(missing) > len(lost_takes):
        puts = [str(item.put) for item in missing[:3]]
        yield f"{rest.key}: {puts} are nowhere ({len(missing)} values); perhaps taken: {len(lost_takes)}"
    first_lost_take = lost_takes[0] if lost_takes else inf
    there = [item for item in items.values() if item.put.outcome == OK]
    yield from _empty_in_vain(operations, there, first_lost_take)
    if is_queue:
        yield from _overtaken(items, first_lost_take)
        if rest.result != sorted(rest.result, key=lambda value: -items[value].put.invoked_ns):
            yield from _rests_out_of_order(rest, items)


def _taken_wrongly(operations: list[Operation], items: dict[str, _Item], rest: Operation) -> Iterator[str]:
    for one in operations:
        if one.kind != "take" or one.outcome != OK or one.result is None:
            continue
        item = items.get(one.result)
        if item is None or item.put.outcome == REFUSED:
            yield f"{one}: {'its putting was refused' if item else 'nobody has put it there'}"
            continue
        if item.taken is not None:
            yield f"{one}: taken already, by {item.taken}"
        if one.precedes(item.put):
            yield f"{one}: taken before {item.put}"
        item.taken = one
    for value in rest.result:
        item = items.get(value)
        if item is None or item.put.outcome == REFUSED:
            yield f"{rest.key}: {value} rests; {'its putting was refused' if item else 'nobody has put it there'}"
        elif item.taken is not None or item.rests:
            yield f"{rest.key}: {value} rests, {'twice' if item.rests else f'taken by {item.taken}'}"
        else:
            item.rests = True


def _missing(items: dict[str, _Item]) -> list[_Item]:
    """Acknowledged, or put together with one that was found."""
    found = {id(item.put) for item in items.values() if not item.is_missing}
    return [
        item
        for item in items.values()
        if item.is_missing and (item.put.outcome == OK or (item.put.outcome == UNKNOWN and id(item.put) in found))
    ]


def _empty_in_vain(operations: list[Operation], there: list[_Item], first_lost_take: float) -> Iterator[str]:
    """Something was in it from before it was looked for until after."""
    spans = []
    for item in there:
        until_ns = item.taken.invoked_ns if item.taken else inf if item.rests else first_lost_take
        if item.put.completed_ns < until_ns:
            spans.append((item.put.completed_ns, until_ns, item))
    spans.sort(key=lambda span: span[0])
    covered: list[tuple[float, float, _Item]] = []
    for begin, end, item in spans:
        if covered and begin < covered[-1][1]:
            covered[-1] = (covered[-1][0], max(end, covered[-1][1]), covered[-1][2])
        else:
            covered.append((begin, end, item))
    at = 0
    for one in sorted((one for one in operations if _found_nothing(one)), key=lambda one: one.invoked_ns):
        while at < len(covered) and covered[at][1] < one.invoked_ns:
            at += 1
        if at < len(covered) and covered[at][0] < one.invoked_ns and one.completed_ns < covered[at][1]:
            yield f"{one}: found nothing, though there was something from {covered[at][2].put} on"


def _found_nothing(one: Operation) -> bool:
    return one.kind == "take" and one.outcome == OK and one.result is None


def _overtaken(items: dict[str, _Item], first_lost_take: float) -> Iterator[str]:
    """Put behind another, and taken before that one."""
    gone = sorted((item for item in items.values() if item.taken), key=lambda item: item.put.invoked_ns)
    earlier = sorted(
        (item for item in items.values() if item.put.outcome == OK), key=lambda item: item.put.completed_ns
    )
    at, latest, latest_item = 0, -inf, None
    for item in gone:
        while at < len(earlier) and earlier[at].put.completed_ns < item.put.invoked_ns:
            other = earlier[at]
            taken_ns = other.taken.invoked_ns if other.taken else inf if other.rests else first_lost_take
            if taken_ns > latest:
                latest, latest_item = taken_ns, other
            at += 1
        assert item.taken is not None
        if latest_item is not None and item.taken.completed_ns < latest:
            yield f"{item.put} by {item.taken} has overtaken {latest_item.put} by {latest_item.taken}"


def _rests_out_of_order(rest: Operation, items: dict[str, _Item]) -> Iterator[str]:
    """The newest stands first."""
    for newer, older in zip(rest.result, rest.result[1:], strict=False):
        if newer in items and older in items and items[newer].put.precedes(items[older].put):
            yield f"{rest.key}: {newer} rests before {older}, which was put there later"
