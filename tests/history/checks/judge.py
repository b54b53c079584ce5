"""Everything in a history that can't be so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.history.checks import bags, counters, events, messages, registers, rights, spaces, topics
from tests.history.operations import REFUSED, Operation
from tests.history.roles import EXPECTED_REFUSALS
from tests.soak.ledger import Page


def faults(
    operations: list[Operation], pages: list[Page], durables: Iterable[str], streams: Iterable[events.Told]
) -> Iterator[str]:
    """One line for each."""
    by_key: dict[str, list[Operation]] = defaultdict(list)
    for one in operations:
        by_key[one.key].append(one)
        if one.outcome == REFUSED and not (spaces.is_answer(one) or rights.is_answer(one) or _is_expected(one)):
            yield f"{one}: refused for no reason"
    for key, of_key in sorted(by_key.items()):
        match key.partition(":")[0]:
            case "register":
                yield from registers.faults(of_key)
            case "counter":
                yield from counters.faults(of_key)
            case "queue" | "set" | "sorted" as kind:
                yield from bags.faults(of_key, is_queue=kind == "queue")
            case "topic":
                yield from topics.faults(of_key)
            case "space":
                yield from spaces.faults(of_key)
            case "right":
                yield from rights.faults(of_key)
            case "event":
                yield from events.faults(of_key, streams)
    yield from messages.faults(operations, pages, durables)


def _is_expected(one: Operation) -> bool:
    return any(words in one.result for words in EXPECTED_REFUSALS)
