"""Whether a topic has every entry once and in order, and its group delivers each once, and again only by a claim.

Pending is what was delivered and not acknowledged; each entry up to the last that was delivered is pending, or was
acknowledged, for certain or perhaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.history.operations import OK, REFUSED, UNKNOWN, Operation

Id = tuple[int, int]


def faults(operations: list[Operation]) -> Iterator[str]:
    """Of one key; the last operations tell what is there."""
    (entries,) = (one for one in operations if one.kind == "entries")
    yield from entries_faults(operations, entries)
    yield from _tails(operations)
    yield from _deliveries(operations, {id: value for id, value in entries.result})
    yield from _pending(operations, [id for id, _ in entries.result])


def place(id: str) -> Id:
    """What sorts as ids do."""
    ms, _, seq = id.partition("-")
    return int(ms), int(seq)


def _appended(operations: list[Operation], *outcomes: str) -> list[Operation]:
    return [one for one in operations if one.kind == "append" and one.outcome in outcomes]


def entries_faults(operations: list[Operation], entries: Operation) -> Iterator[str]:
    """Of what is there at the end, and of the order in which it came."""
    key = entries.key
    places = [place(id) for id, _ in entries.result]
    if places != sorted(set(places)):
        yield f"{key}: its entries are twice there or out of order"
    times = Counter(value for _, value in entries.result)
    yield from (f"{key}: {value} is there {count} times" for value, count in times.items() if count > 1)
    there = dict(entries.result)
    for one in _appended(operations, OK):
        if there.get(one.result) != one.value:
            yield f"{one}: {one.result} is {there.get(one.result)!r}"
    may_be = {one.value: one for one in _appended(operations, OK, UNKNOWN)}
    refused = {one.value for one in _appended(operations, REFUSED)}
    for id, value in entries.result:
        if value not in may_be:
            yield f"{key}: {id} is {value}, {'which was refused' if value in refused else 'which nobody has appended'}"
    at, highest = 0, None
    over = sorted(_appended(operations, OK), key=lambda one: one.completed_ns)
    for one in _appended(operations, OK):
        while over[at].completed_ns < one.invoked_ns:
            if highest is None or place(over[at].result) > place(highest.result):
                highest = over[at]
            at += 1
        if highest is not None and place(one.result) < place(highest.result):
            yield f"{one}: its id is below that of {highest}"


def _tails(operations: list[Operation]) -> Iterator[str]:
    """Who looks at the last entries sees all that were acknowledged by then."""
    over = sorted(_appended(operations, OK), key=lambda one: one.completed_ns)
    for one in operations:
        if one.kind != "tail" or one.outcome != OK:
            continue
        seen = {id for id, _ in one.result}
        first = min(map(place, seen)) if len(seen) == one.value else (-1, -1)
        for other in over:
            if not other.precedes(one):
                break
            if place(other.result) >= first and other.result not in seen:
                yield f"{one}: does not show {other}"


def _deliveries(operations: list[Operation], there: dict[str, str]) -> Iterator[str]:
    acknowledged = {one.value: one for one in operations if _acknowledges(one) and one.outcome == OK and one.result}
    delivered: dict[str, Operation] = {}
    last: dict[str, Id] = {}
    for one in operations:
        if one.kind not in ("deliver", "claim") or one.outcome != OK:
            continue
        for id, value in one.result:
            if there.get(id) != value:
                yield f"{one}: {id} is {there.get(id)!r}"
            if id in acknowledged and acknowledged[id].precedes(one):
                yield f"{one}: {id} was acknowledged before, by {acknowledged[id]}"
            if one.kind == "deliver":
                if id in delivered:
                    yield f"{one}: {id} was delivered before, by {delivered[id]}"
                if place(id) <= last.get(one.client, (-1, -1)):
                    yield f"{one}: {id} comes behind later ones"
                delivered[id], last[one.client] = one, place(id)
    times = Counter(one.value for one in operations if _acknowledges(one) and one.outcome == OK and one.result)
    yield from (f"{id} was acknowledged {count} times" for id, count in times.items() if count > 1)


def _acknowledges(one: Operation) -> bool:
    return one.kind == "acknowledge"


def _pending(operations: list[Operation], ids: list[str]) -> Iterator[str]:
    (pending,) = (one for one in operations if one.kind == "pending")
    (last,) = (one for one in operations if one.kind == "delivered")
    waiting = {id: (consumer, times) for id, consumer, times in pending.result}
    if len(waiting) != len(pending.result):
        yield f"{pending.key}: something is pending twice"
    acknowledgements = [one for one in operations if _acknowledges(one)]
    certain = {one.value: one for one in acknowledgements if one.outcome == OK and one.result}
    perhaps = {one.value for one in acknowledgements if one.outcome == UNKNOWN}
    delivered_to = place(last.result)
    for one in operations:
        for id in (id for id, _ in one.result or ()) if one.kind in ("deliver", "claim") and one.outcome == OK else ():
            if place(id) > delivered_to:
                yield f"{one}: {id} was delivered, and the group says {last.result}"
    for id in ids:
        if place(id) > delivered_to:
            if id in waiting:
                yield f"{pending.key}: {id} is pending, and was not delivered up to {last.result}"
        elif id in waiting:
            if id in certain:
                yield f"{pending.key}: {id} is pending with {waiting[id][0]}, after {certain[id]}"
        elif id not in certain and id not in perhaps:
            yield f"{pending.key}: {id} was delivered, nobody has acknowledged it, and it is not pending"
    yield from _counts(operations, waiting)


def _counts(operations: list[Operation], waiting: dict[str, tuple[str, int]]) -> Iterator[str]:
    """How often something was delivered: as often as somebody says, and no oftener than it may have been."""
    handed = Counter(
        id for one in operations if one.kind in ("deliver", "claim") and one.outcome == OK for id, _ in one.result
    )
    perhaps = sorted(
        one.invoked_ns for one in operations if one.kind in ("deliver", "claim") and one.outcome == UNKNOWN
    )
    for id, (consumer, times) in waiting.items():
        if not handed[id] <= times <= handed[id] + len(perhaps):
            most = handed[id] + len(perhaps)
            yield f"{id} is pending with {consumer}, delivered {times} times; {handed[id]} to {most} are known"
