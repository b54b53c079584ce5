"""What subscribers have heard, as the soak's ledger has it: acknowledged messages once and in order of each publisher;
and nothing that nobody has published.

What was refused nobody has heard; what some may have heard is said to be so (PARTIAL)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.history.operations import OK, REFUSED, Operation
from tests.soak import ledger
from tests.soak.ledger import Page, Published


def faults(operations: list[Operation], pages: list[Page], durables: Iterable[str]) -> Iterator[str]:
    """`pages`: those of the subscribers; `durables`: the beginnings of the names of those that are one subscriber."""
    publishers: dict[str, Page] = {}
    published: dict[str, dict[int, Operation]] = defaultdict(dict)
    for one in operations:
        if one.kind == "publish":
            page = publishers.setdefault(one.client, Page(Path(one.client)))
            published[one.client][one.value] = one
            if one.outcome == OK:
                page.published.append(Published(one.value, one.key, int(one.invoked_ns), int(one.completed_ns)))
    everybody = [*publishers.values(), *pages]
    yield from ledger.faults(everybody)
    for durable in durables:
        yield from ledger.durable_faults([page for page in pages if page.name.startswith(durable)], everybody)
    for reader in pages:
        for (name, publisher), heard in reader.received.items():
            for number, channel in heard:
                one = published.get(publisher, {}).get(number)
                if one is None or one.key != channel or _is_unheard(one):
                    what = one or f"{publisher}:{number}, which nobody said"
                    yield f"{reader.name} heard by {name} on {channel}: {what}"


def _is_unheard(one: Operation) -> bool:
    return one.outcome == REFUSED and "PARTIAL" not in one.result
