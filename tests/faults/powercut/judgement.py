"""What was acknowledged, and whether an image holds what it must."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.powercut import work
from tests.faults.powercut.images import Record


class Notes:
    """What was acknowledged so far."""

    def __init__(self, left: dict[str, int] | None = None, path: str = "notes") -> None:
        """`left`: by name, how far a store had come that a power cut has left: surely, whatever the policy. `path`: the
        file that has them."""
        self._path = path
        self.left = dict(left or {})
        self.last = dict(self.left)
        self.times: dict[tuple[str, int], int] = {}
        self.now_ns = 0

    def take(self, record: Record) -> None:
        if record.path == self._path and record.kind == b"W":
            for line in record.data.decode().splitlines():
                name, number = line.split()
                self.last[name] = int(number)
                self.times[name, int(number)] = self.now_ns = record.time_ns

    def lost_s(self, holds: dict[str, Any]) -> float:
        """For how long there had been acknowledged what is not there."""
        lost_ns = [self.times.get((name, _last_of(holds, name) + 1), self.now_ns) for name in self.last]
        return (self.now_ns - min(lost_ns, default=self.now_ns)) / 1e9


def reached(holds: dict[str, Any]) -> dict[str, int]:
    """By name, how far an image has come."""
    names = [key.removeprefix("k:") for key in holds if key.startswith("k:")]
    return {name: _last_of(holds, name) for name in names}


def faults(holds: dict[str, Any], notes: Notes, is_sure: bool) -> list[str]:
    """What is lost, or in pieces."""
    found = []
    for name, acknowledged in notes.last.items():
        entries = [int(id.partition("-")[0]) for id in holds.get(f"t:{name}", [])]
        last = _last_of(holds, name)
        sure = acknowledged if is_sure else notes.left.get(name, 0)
        if last < sure:
            found.append(f"{name}: {sure} was acknowledged, and {last} is the last there is")
        if entries != list(range(last - len(entries) + 1, last + 1)):
            found.append(f"{name} has holes: {entries}")
        if int(holds.get(f"k:{name}", 0)) != last or int(holds.get(f"l:{name}", [0])[-1]) != last:
            found.append(f"{name}: a transaction is there in parts")
        if [int(id.partition("-")[0]) for id in holds.get(f"c:{name}", [])] != list(range(1, last + 1)):
            found.append(f"{name}: a topic that nobody trims has holes, perhaps where its blocks end")
        found += [
            f"{name}: its {what} is of another transaction" for what in _of_another_transaction(holds, name, last)
        ]
    return found


def _last_of(holds: dict[str, Any], name: str) -> int:
    entries = holds.get(f"t:{name}")
    return int(entries[-1].partition("-")[0]) if entries else 0


def _of_another_transaction(holds: dict[str, Any], name: str, last: int) -> Iterator[str]:
    fields = {f"f{number % work.HASH_FIELDS}": str(number) for number in range(1, last + 1)}
    if holds.get(f"h:{name}", {}) != fields:
        yield "hash"
    members = set(map(str, range(max(1, last - work.SET_MEMBERS + 1), last + 1)))
    if set(holds.get(f"s:{name}", [])) != members:
        yield "set"
    ranked = dict(map(tuple, holds.get(f"z:{name}", [])))
    newest = ranked.pop("newest", 0)
    if newest != last or ranked != {f"m{number}": number for number in range(last - len(ranked) + 1, last + 1)}:
        yield "sorted set"
