"""Each check finds what it is there for: histories that can be so, and what is wrong with the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from typing import Any

import pytest

from tests.history import operations
from tests.history.checks import bags, counters, events, messages, registers, rights, spaces, topics
from tests.history.operations import OK, REFUSED, UNKNOWN, Operation, Page
from tests.soak import ledger

A, B, C = "a", "b", "c"
Judge = Callable[[list[Operation]], Iterator[str]]


def op(
    kind: str, value: Any, begin: float, end: float = inf, result: Any = None, outcome: str = "", client: str = A
) -> Operation:
    """One of them; without an end its outcome is unknown."""
    said = outcome or (UNKNOWN if end == inf else OK)
    return Operation(client, int(begin), kind, "k:0", value, begin, end, said, result)


def queue(history: list[Operation]) -> Iterator[str]:
    return bags.faults(history, is_queue=True)


def put(value: str, begin: float, end: float = inf, outcome: str = "") -> Operation:
    return op("put", [value], begin, end, outcome=outcome)


def rest(*values: str) -> Operation:
    return op("rest", None, 100, 101, list(values))


WRITES = [op("write", A, 0, 1), op("write", B, 2, 3)]
ENTRIES = [["1-0", A], ["2-0", B]]
APPENDS = [op("append", A, 0, 1, "1-0"), op("append", B, 2, 3, "2-0")]


def topic(*more: Operation, entries: Any = ENTRIES, pending: Any = (), delivered: str = "0-0") -> list[Operation]:
    last = [op("entries", None, 100, 101, entries), op("pending", None, 102, 103, list(pending))]
    return [*APPENDS, *more, *last, op("delivered", None, 104, 105, delivered)]


def given(kind: str, begin: float, end: float, *ids: str, client: str = A) -> Operation:
    return op(kind, client, begin, end, [[id, dict(ENTRIES)[id]] for id in ids], client=client)


def acknowledged(id: str, begin: float, end: float = inf, first: int = 1) -> Operation:
    return op("acknowledge", id, begin, end, first)


def at_keys(
    kind: str, begin: float, end: float, result: Any, names: str, *more: Any, outcome: str = ""
) -> Operation:
    """One of what is asked of three keys: which of them, and what else belongs to it."""
    return op(kind, [list(names), *more], begin, end, result, outcome)


SET_A = at_keys("set", 0, 1, None, "a", A, False)


def use(begin: float, end: float, is_there: bool) -> Operation:
    if is_there:
        return op("use", "u", begin, end, True)
    return op("use", "u", begin, end, "this user has no permissions to run the 'get' command", REFUSED)


def events_of(entries: Any = ENTRIES) -> list[Operation]:
    return [*APPENDS, op("entries", None, 100, 101, entries)]


def streamed(ids: list[str], *, has_ended: bool = False) -> Judge:
    return lambda history: events.faults(history, [events.Told("a reader", ids, has_ended)])


POSSIBLE: dict[str, tuple[Judge, list[Operation]]] = {
    "reads see the write before them": (registers.faults, [*WRITES, op("read", None, 4, 5, B)]),
    "a write of unknown outcome happens late": (
        registers.faults,
        [op("write", A, 0), op("write", B, 1, 2), op("read", None, 3, 4, B), op("read", None, 5, 6, A)],
    ),
    "a write of unknown outcome never happens": (registers.faults, [op("write", A, 0), op("read", None, 3, 4, None)]),
    "reads that overlap a write see the old or the new": (
        registers.faults,
        [op("write", A, 0, 1), op("write", B, 2, 9), op("read", None, 3, 4, A), op("read", None, 5, 6, B)],
    ),
    "a lost addition counts": (counters.faults, [op("add", 1, 0), op("add", 1, 1, 2, 2), op("count", None, 3, 4, 2)]),
    "a lost addition does not count": (counters.faults, [op("add", 1, 0), op("add", 1, 1, 2, 1)]),
    "what is missing was perhaps taken": (queue, [put(A, 0, 1), op("take", None, 2), rest()]),
    "a lost put is there": (queue, [put(A, 0), rest(A)]),
    "a queue is empty before anything is put there": (queue, [op("take", None, 0, 1), put(A, 2, 3), rest(A)]),
    "puts at the same time come in any order": (
        queue,
        [put(A, 0, 3), put(B, 1, 2), op("take", None, 4, 5, B), op("take", None, 6, 7, A), rest()],
    ),
    "delivered, pending": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), pending=[["1-0", A, 1]], delivered="1-0"),
    ),
    "delivered to a lost reader, claimed, acknowledged": (
        topics.faults,
        topic(op("deliver", B, 4), given("claim", 6, 7, "1-0"), acknowledged("1-0", 8, 9), delivered="1-0"),
    ),
    "three keys, one of which may go": (
        spaces.faults,
        [
            at_keys("set", 0, 1, None, "a", A, True),
            at_keys("get", 2, 3, None, "a"),
            at_keys("rename", 4, 5, None, "ab"),
            at_keys("all", 6, 7, [None, A, None], "abc"),
            at_keys("persist", 8, 9, 1, "b"),
            at_keys("copy", 10, 11, 1, "bc"),
            at_keys("swap", 12, 13, [A, None], "ba"),
            at_keys("all", 14, 15, [A, None, A], "abc"),
        ],
    ),
    "a rename that finds nothing, and a script of unknown outcome": (
        spaces.faults,
        [
            at_keys("both", 0, inf, None, "ab", A),
            at_keys("rename", 1, 2, "no such key", "ab", outcome=REFUSED),
            at_keys("all", 3, 4, [A, A, None], "abc"),
            at_keys("delete", 5, 6, 2, "ab"),
        ],
    ),
    "a right that is used while it is revoked": (
        rights.faults,
        [op("revoke", "u", 0, 9), use(1, 2, True), use(3, 4, False), use(10, 11, False)],
    ),
    "a right that was perhaps revoked": (rights.faults, [op("revoke", "u", 0), use(1, 2, True), use(3, 4, False)]),
    "events, and a reader that came back": (streamed(["1-0", "2-0"], has_ended=True), events_of()),
    "events, and a reader that was killed": (streamed(["1-0"]), events_of()),
    "perhaps acknowledged": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), acknowledged("1-0", 6), delivered="1-0"),
    ),
}  # fmt: skip


IMPOSSIBLE: dict[str, tuple[Judge, list[Operation], str]] = {
    "an acknowledged write is lost": (registers.faults, [*WRITES, op("read", None, 4, 5, A)], "has no room beside"),
    "all writes are lost": (registers.faults, [*WRITES, op("read", None, 4, 5, None)], "has no room beside"),
    "a read within another's time": (
        registers.faults,
        [*WRITES[:1], op("read", None, 9, 10, A), op("write", B, 3, 4), op("read", None, 5, 6, B)],
        "at the same time",
    ),
    "a write that nobody sees, within another's time": (
        registers.faults,
        [*WRITES[:1], op("write", B, 3, 4), op("read", None, 9, 10, A)],
        "has no room beside",
    ),
    "a refused write is read": (
        registers.faults,
        [op("write", A, 0, 1, "MISCONF", REFUSED), op("read", None, 2, 3, A)],
        "was refused",
    ),
    "half of a transaction is read": (
        registers.faults,
        [*WRITES, op("read", None, 4, 5, "torn")],
        "nobody has written so",
    ),
    "read before it is written": (
        registers.faults,
        [op("read", None, 0, 1, A), op("write", A, 2, 3)],
        "read before",
    ),
    "an acknowledged addition is lost": (
        counters.faults,
        [op("add", 1, 0, 1, 1), op("add", 1, 2, 3, 1)],
        "answered already",
    ),
    "an addition counts twice": (
        counters.faults,
        [op("add", 1, 0, 1, 1), op("count", None, 2, 3, 2)],
        "nobody has added",
    ),
    "a lost addition comes too late": (
        counters.faults,
        [op("add", 1, 0, 1, 2), op("add", 1, 4), op("count", None, 6, 7, 2)],
        "nobody has added",
    ),
    "a counter goes back": (
        counters.faults,
        [op("add", 1, 0, 1, 1), op("add", 1, 2, 3, 2), op("count", None, 4, 5, 1)],
        "behind",
    ),
    "additions in the wrong order": (
        counters.faults,
        [op("add", 1, 0, 1, 2), op("add", 1, 2, 3, 1)],
        "behind",
    ),
    "an acknowledged put is lost": (queue, [put(A, 0, 1), rest()], "are nowhere"),
    "half of a put is lost": (queue, [op("put", [A, B], 0), rest(A)], "are nowhere"),
    "taken twice": (
        queue,
        [put(A, 0, 1), op("take", None, 2, 3, A), op("take", None, 4, 5, A, client=B), rest()],
        "taken already",
    ),
    "taken, and there": (queue, [put(A, 0, 1), op("take", None, 2, 3, A), rest(A)], "rests, taken by"),
    "there twice": (queue, [put(A, 0, 1), rest(A, A)], "twice"),
    "taken before it is put there": (queue, [op("take", None, 0, 1, A), put(A, 2, 3), rest()], "taken before"),
    "never put there": (queue, [op("take", None, 0, 1, A), rest()], "nobody has put it there"),
    "a refused put is taken": (
        queue,
        [put(A, 0, 1, REFUSED), op("take", None, 2, 3, A), rest()],
        "its putting was refused",
    ),
    "a refused put is there": (queue, [put(A, 0, 1, REFUSED), rest(A)], "its putting was refused"),
    "a queue that is not empty": (
        queue,
        [put(A, 0, 1), op("take", None, 2, 3), op("take", None, 4, 5, A), rest()],
        "found nothing",
    ),
    "a queue that is never empty, by turns": (
        queue,
        [put(A, 0, 1), put(B, 2, 3), op("take", None, 1.5, 6), op("take", None, 4, 5, A), rest(B)],
        "found nothing",
    ),
    "overtaken": (
        queue,
        [put(A, 0, 1), put(B, 2, 3), op("take", None, 4, 5, B), op("take", None, 6, 7, A), rest()],
        "has overtaken",
    ),
    "overtaken what is there yet": (
        queue,
        [put(A, 0, 1), put(B, 2, 3), op("take", None, 4, 5, B), rest(A)],
        "has overtaken",
    ),
    "there in the wrong order": (queue, [put(A, 0, 1), put(B, 2, 3), rest(A, B)], "put there later"),
    "an acknowledged entry is lost": (topics.faults, topic(entries=ENTRIES[:1]), "2-0 is None"),
    "an entry is there twice": (topics.faults, topic(entries=[*ENTRIES, ["3-0", B]]), "2 times"),
    "entries out of order": (topics.faults, topic(entries=ENTRIES[::-1]), "out of order"),
    "an entry that nobody has appended": (topics.faults, topic(entries=[*ENTRIES, ["3-0", C]]), "nobody has appended"),
    "a refused entry is there": (
        topics.faults,
        topic(op("append", C, 4, 5, "MISCONF", REFUSED), entries=[*ENTRIES, ["3-0", C]]),
        "which was refused",
    ),
    "an id goes back": (
        topics.faults,
        topic(op("append", C, 4, 5, "1-5"), entries=[ENTRIES[0], ["1-5", C], ENTRIES[1]]),
        "its id is below",
    ),
    "the newest entry is not seen": (topics.faults, topic(op("tail", 9, 4, 5, ENTRIES[:1])), "does not show"),
    "delivered twice": (
        topics.faults,
        topic(
            given("deliver", 4, 5, "1-0"),
            given("deliver", 6, 7, "1-0", client=B),
            pending=[["1-0", B, 2]],
            delivered="1-0",
        ),
        "was delivered before",
    ),
    "delivered, and forgotten": (topics.faults, topic(given("deliver", 4, 5, "1-0"), delivered="1-0"), "not pending"),
    "delivered to nobody": (topics.faults, topic(delivered="1-0"), "not pending"),
    "delivered out of order": (
        topics.faults,
        topic(given("deliver", 4, 5, "2-0", "1-0"), pending=[["1-0", A, 1], ["2-0", A, 1]], delivered="2-0"),
        "behind later ones",
    ),
    "acknowledged, and pending": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), acknowledged("1-0", 6, 7), pending=[["1-0", A, 1]], delivered="1-0"),
        "is pending with",
    ),
    "acknowledged, and claimed": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), acknowledged("1-0", 6, 7), given("claim", 8, 9, "1-0"), delivered="1-0"),
        "was acknowledged before",
    ),
    "acknowledged twice": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), acknowledged("1-0", 6, 7), acknowledged("1-0", 8, 9), delivered="1-0"),
        "acknowledged 2 times",
    ),
    "delivered again by nobody": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), pending=[["1-0", A, 2]], delivered="1-0"),
        "delivered 2 times",
    ),
    "pending, and not delivered": (topics.faults, topic(pending=[["1-0", A, 0]]), "was not delivered up to"),
    "delivered beyond what the group says": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), pending=[["1-0", A, 1]]),
        "and the group says",
    ),
    "deleted, and there": (
        spaces.faults,
        [SET_A, at_keys("delete", 2, 3, 1, "ac"), at_keys("get", 4, 5, A, "a")],
        "in no order",
    ),
    "gone without a time to live": (spaces.faults, [SET_A, at_keys("get", 2, 3, None, "a")], "in no order"),
    "gone though its time to live was taken away": (
        spaces.faults,
        [
            SET_A,
            at_keys("expire", 2, 3, 1, "a"),
            at_keys("persist", 4, 5, 1, "a"),
            at_keys("get", 6, 7, None, "a"),
        ],
        "in no order",
    ),
    "renamed, and there twice": (
        spaces.faults,
        [SET_A, at_keys("rename", 2, 3, None, "ab"), at_keys("all", 4, 5, [A, A, None], "abc")],
        "in no order",
    ),
    "renamed, and nowhere": (
        spaces.faults,
        [SET_A, at_keys("rename", 2, 3, None, "ab"), at_keys("all", 4, 5, [None, None, None], "abc")],
        "in no order",
    ),
    "not renamed, though it is there": (
        spaces.faults,
        [SET_A, at_keys("rename", 2, 3, "no such key", "ab", outcome=REFUSED)],
        "in no order",
    ),
    "copied, and not there": (
        spaces.faults,
        [SET_A, at_keys("copy", 2, 3, 1, "ab"), at_keys("get", 4, 5, None, "b")],
        "in no order",
    ),
    "taken out of a key twice": (
        spaces.faults,
        [SET_A, at_keys("take", 2, 4, A, "a"), at_keys("take", 3, 5, A, "a")],
        "in no order",
    ),
    "half of a script is seen": (
        spaces.faults,
        [at_keys("both", 0, 9, [None, None], "ab", A), at_keys("all", 1, 2, [A, None, None], "abc")],
        "in no order",
    ),
    "half of a script of unknown outcome is left": (
        spaces.faults,
        [at_keys("both", 0, inf, None, "ab", A), at_keys("all", 1, 2, [None, A, None], "abc")],
        "in no order",
    ),
    "a refused script has done something": (
        spaces.faults,
        [at_keys("both", 0, 1, "MISCONF", "ab", A, outcome=REFUSED), at_keys("all", 2, 3, [A, A, None], "abc")],
        "in no order",
    ),
    "two scripts that swap see the same": (
        spaces.faults,
        [
            SET_A,
            at_keys("set", 2, 3, None, "b", B, False),
            at_keys("swap", 4, 8, [A, B], "ab"),
            at_keys("swap", 5, 9, [A, B], "ab"),
        ],
        "in no order",
    ),
    "a right that was revoked passes": (rights.faults, [op("revoke", "u", 0, 1), use(2, 3, True)], "in no order"),
    "a right that was revoked passes at another process, later": (
        rights.faults,
        [op("revoke", "u", 0, 9), use(1, 2, False), use(3, 4, True)],
        "in no order",
    ),
    "a right that was granted is denied": (
        rights.faults,
        [op("revoke", "u", 0, 1), op("grant", "u", 2, 3), use(4, 5, False)],
        "in no order",
    ),
    "a refused change of rights holds": (
        rights.faults,
        [op("revoke", "u", 0, 1, "MISCONF", REFUSED), use(2, 3, False)],
        "in no order",
    ),
    "an event is lost": (streamed([]), events_of(entries=ENTRIES[:1]), "2-0 is None"),
    "an event is posted twice": (streamed([]), events_of(entries=[*ENTRIES, ["3-0", B]]), "2 times"),
    "a stream tells an event twice": (streamed(["1-0", "1-0"]), events_of(), "told 1-0 in the place of 2-0"),
    "a stream leaves an event out": (streamed(["2-0"]), events_of(), "told 2-0 in the place of 1-0"),
    "a stream tells events out of order": (streamed(["2-0", "1-0"]), events_of(), "told 2-0 in the place of 1-0"),
    "a stream ends too early": (streamed(["1-0"], has_ended=True), events_of(), "was not told 2-0"),
    "a stream tells of an event that is not there": (streamed(["1-0", "2-0", "3-0"]), events_of(), "place of the end"),
    "a stream has a gap": (streamed(["gap {}"]), events_of(), "told gap {} in the place of 1-0"),
    "pending twice": (
        topics.faults,
        topic(given("deliver", 4, 5, "1-0"), pending=[["1-0", A, 1], ["1-0", B, 1]], delivered="1-0"),
        "pending twice",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POSSIBLE)
def test_what_can_be_so_has_no_fault(name: str) -> None:
    judge, history = POSSIBLE[name]
    assert list(judge(history)) == []


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_what_can_not_be_so_is_found(name: str) -> None:
    judge, history, told = IMPOSSIBLE[name]
    found = list(judge(history))
    assert any(told in fault for fault in found), found


def reader(*heard: int, ended: bool = True, name: str = "reader-1") -> ledger.Page:
    page = ledger.Page(Path(name), subscribed={"a.1": 0}, ended=ended)
    page.received["a.1", "writer-1"] = [(number, "a.1") for number in heard]
    return page


def published(*outcomes: str) -> list[Operation]:
    return [
        Operation("writer-1", number, "publish", "a.1", number, number * 10, number * 10 + 5, *outcome.split(":"))
        for number, outcome in enumerate(outcomes, 1)
    ]


@pytest.mark.parametrize(
    ("outcomes", "heard", "told"),
    [
        ((OK, OK), (1, 2), ""),
        ((OK, UNKNOWN), (1,), ""),
        ((OK, UNKNOWN), (1, 2), ""),
        ((OK, OK), (1,), "not [(2"),
        ((OK, OK), (2, 1), "out of order"),
        ((OK, OK), (1, 1, 2), "twice"),
        ((OK, f"{REFUSED}:BUSY"), (1, 2), "refused"),
        ((OK, f"{REFUSED}:MISCONF"), (1, 2), "refused"),
        ((OK, f"{REFUSED}:PARTIAL"), (1, 2), ""),
        ((OK, OK), (1, 2, 3), "nobody said"),
    ],
)
def test_what_a_subscriber_has_heard_is_judged(outcomes: tuple[str, ...], heard: tuple[int, ...], told: str) -> None:
    found = list(messages.faults(published(*outcomes), [reader(*heard)], []))
    assert any(told in fault for fault in found) if told else found == []


def test_message_that_no_life_of_a_durable_subscriber_has_heard_is_found() -> None:
    lives = [reader(1, ended=False, name="durable-x-1"), reader(3, name="durable-x-2")]
    found = list(messages.faults(published(OK, OK, OK), lives, ["durable-x-"]))
    assert any("not [2]" in fault for fault in found)


def test_page_that_a_kill_has_cut_off_says_what_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "client.page"
    page = Page(path)
    page.asked(1, "write", "k", A)
    page.answered(1, OK, None)
    page.asked(2, "write", "k", B)
    page.lost("closed")
    with path.open("a") as cut:
        cut.write(json.dumps(["=", 2, 3, OK, None]))  # and no end of the line
    first, second = operations.read([path])
    assert (first.outcome, second.outcome, second.completed_ns) == (OK, UNKNOWN, inf)
