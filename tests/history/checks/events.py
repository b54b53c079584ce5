"""Whether the topic of events has each that was posted once and in order, and every stream has told all of it from the
first on, each once, in the topic's order, whoever it had to come back to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.history.checks import topics
from tests.history.operations import Operation


class Told(NamedTuple):
    """What one reader's streams have told, one behind the other."""

    reader: str
    ids: list[str]
    has_ended: bool
    """It has heard the last event."""


def read(page: Path) -> Told:
    """A reader's page. A last line that was cut off by a kill does not count."""
    lines = [json.loads(line) for line in page.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return Told(page.stem, [id for id, is_last in lines if not is_last], any(is_last for _, is_last in lines))


def faults(operations: list[Operation], streams: Iterable[Told]) -> Iterator[str]:
    """`operations`: those of events; the last tells what is there."""
    (entries,) = (one for one in operations if one.kind == "entries")
    yield from topics.entries_faults(operations, entries)
    there = [id for id, _ in entries.result]
    for stream in streams:
        for place, id in enumerate(stream.ids):
            expected = there[place] if place < len(there) else "the end"
            if id != expected:
                yield f"{stream.reader}: was told {id} in the place of {expected}"
                break
        if stream.has_ended and len(stream.ids) < len(there):
            yield f"{stream.reader}: was not told {there[len(stream.ids)]}, and then of the end"
