"""The processes that keep pages of an environment from being reused: its readers, and those that have pinned a
checkpoint.

LMDB's table of readers has a process, a thread and the commit that each reads, but not since when: a process that
watches the table knows how long it has seen a reader. A reader of the last commit tells nothing: while nobody writes,
each look may find another transaction of the same thread; and it keeps no page. So its time begins when there is a
later commit.

None of our transactions is open for longer than a moment, and no pin for longer than from one sync to the next; one
that is belongs to a process that is stopped, starved or broken. Nothing can free what it holds while it lives; so it is
named.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rlite_pubsub.storage.locks.reader_number import pid_in

OLD_SECONDS = 10.0
"""The seconds after which a reader is old: it is reported and logged."""
_INACTIVE = "-"
_STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "waiting for a disk",
    "T": "stopped",
    "t": "traced",
    "Z": "dead",
    "X": "dead",
}


class TableLine(NamedTuple):
    """One line of LMDB's table."""

    number: int
    """Of the process; locks/reader_number.py."""
    thread: str
    transaction: int

    @property
    def pid(self) -> int:
        """The process's id in its own pid namespace."""
        return pid_in(self.number)


class OldReader(NamedTuple):
    """A reader that has been there for long."""

    reader: TableLine
    age_s: float
    """How long it has been seen, at least."""
    process: int
    """Its process's id here; 0 if that cannot be seen from here, -1 if it has ended."""

    @property
    def pid(self) -> int:
        """Its process's id, for people: here, or else in its own pid namespace."""
        return self.process if self.process > 0 else self.reader.pid

    @property
    def state(self) -> str:
        """The state of its process, as the system reports it."""
        return state_of(self.process)

    def __str__(self) -> str:
        return name_of(self.reader.number, self.process)


def table(text: str) -> list[TableLine]:
    """Return the lines of LMDB's table of readers that are reading."""
    found = []
    for line in text.splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdigit() and words[2] != _INACTIVE:
            found.append(TableLine(int(words[0]), words[1], int(words[2])))
    return found


def oldest(text: str) -> int | None:
    """Return the commit back to which pages are kept; None if nobody reads."""
    return min((reader.transaction for reader in table(text)), default=None)


def name_of(number: int, process: int) -> str:
    """Return how a reader is called, by its number and its process's id here (0: it cannot be seen; -1: it has
    ended)."""
    if process:
        return f"process {process if process > 0 else pid_in(number)} ({state_of(process)})"
    return f"process {pid_in(number)} in another pid namespace, such as another container,"


def state_of(pid: int) -> str:
    """Return what a process is doing, by its id here: 0 if it cannot be seen, -1 if it has ended."""
    if pid <= 0:
        return "dead" if pid else "in another pid namespace"
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "unknown"
    return _STATES.get(stat.rpartition(")")[2].split()[0], "unknown")


class ReaderWatch:
    """Watches the readers of one environment, for one process."""

    def __init__(
        self, text: Callable[[], str], last_commit: Callable[[], int], process_of: Callable[[int], int]
    ) -> None:
        """`text` returns LMDB's table as it is now, `process_of` a process's id here by its number."""
        self._text = text
        self._process_of = process_of
        self._last_commit = last_commit
        self._since: dict[TableLine, float] = {}
        self._told: set[TableLine] = set()

    def adopt(self, ages_s: dict[TableLine, float], now: float) -> None:
        """Take over how long others have seen these readers."""
        for reader, age_s in ages_s.items():
            self._since[reader] = min(self._since.get(reader, now), now - age_s)

    def old_ones(self, now: float) -> list[OldReader]:
        """Return the old readers, the oldest first. To be called now and then."""
        since = self._since
        last_commit = self._last_commit()  # before the table: a reader in it that is older was so by then
        behind = [reader for reader in table(self._text()) if reader.transaction < last_commit]
        self._since = {reader: min(since.get(reader, now), now) for reader in behind}
        self._told &= self._since.keys()
        ages = {reader: age_s for reader, seen in self._since.items() if (age_s := now - seen) >= OLD_SECONDS}
        old = [OldReader(reader, age_s, self._process_of(reader.number)) for reader, age_s in ages.items()]
        return sorted(old, key=lambda old: -old.age_s)

    def untold(self, old: list[OldReader]) -> list[OldReader]:
        """Return those of them that were not reported before."""
        found = [each for each in old if each.reader not in self._told]
        self._told.update(each.reader for each in found)
        return found
