"""SCAN's promise: what is there from the first step to the last is seen, whatever else happens meanwhile, here or in
another process; and cursors are small."""

from __future__ import annotations

import tempfile
from pathlib import Path

from engines import open_data
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from keeper import Clock

from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sorted_sets import SortedSet

COLLECTIONS = b"a set", b"a hash", b"a sorted set"
FIRST_MEMBERS = 600
"""More than stand in the record of a key."""
PLACES_EACH = 16
"""Cursors stay below so many for each of what is scanned..."""
MOST = 1 << 52
"""... and below this in any case."""
MOST_STEPS = 10_000

names = st.integers(0, 400).map(lambda number: b"key%d" % number)
member_numbers = st.integers(0, 2 * FIRST_MEMBERS)
few_names = st.lists(names, min_size=1, max_size=40)


class Scan:
    """A scan that is under way: where it goes on, what must be seen, and what was seen."""

    def __init__(self, due: set[bytes], size: int) -> None:
        self.cursor = 0
        self.due = due
        self.seen: set[bytes] = set()
        self.largest = size
        self.steps = 0

    def step(self, cursor: int, found: list[bytes], size: int) -> bool:
        """Note a step; return whether it was the last."""
        self.seen.update(found)
        self.largest = max(self.largest, size)
        self.steps += 1
        assert self.steps < MOST_STEPS
        assert 0 <= cursor < min(MOST, 2 * PLACES_EACH * (self.largest + 1))
        self.cursor = cursor
        if not cursor:
            missed = self.due - self.seen
            assert not missed
        return not cursor


class Scans(RuleBasedStateMachine):
    """Two processes, as far as their keyspaces know, write, delete and rename while scans are under way."""

    @initialize(first=st.lists(names, max_size=300))
    def begin(self, first: list[bytes]) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock(1_000)
        self.environment = open_data(Path(self.folder.name) / "data.mdb", 1 << 24)
        self.open_keyspaces()
        self.keys: set[bytes] = set()
        self.members: set[bytes] = {b"member%d" % number for number in range(FIRST_MEMBERS)}
        keyspace = self.here
        keyspace.create(Set, 1, COLLECTIONS[0]).add(sorted(self.members))
        keyspace.create(Hash, 1, COLLECTIONS[1]).put([word for name in sorted(self.members) for word in (name, b"")])
        ranked = keyspace.create(SortedSet, 1, COLLECTIONS[2])
        for name in sorted(self.members):
            ranked.put(name, 1.0)
        assert keyspace.end_turn() is None
        self.set_keys(0, first)
        self.scan: Scan | None = None
        self.pages: dict[bytes, Scan] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.environment.close()
            self.folder.cleanup()

    def open_keyspaces(self) -> None:
        self.keyspaces = [Keyspace(self.environment, self.clock) for _ in range(2)]

    @property
    def here(self) -> Keyspace:
        return self.keyspaces[0]

    def set_keys(self, process: int, added: list[bytes]) -> None:
        keyspace = self.keyspaces[process]
        for name in added:
            keyspace.put_string(0, name, b"v")
            self.keys.add(name)
        assert keyspace.end_turn() is None

    def gone(self, name: bytes) -> None:
        self.keys.discard(name)
        if self.scan is not None:
            self.scan.due.discard(name)

    # -- what happens meanwhile

    @rule(process=st.integers(0, 1), added=few_names)
    def write(self, process: int, added: list[bytes]) -> None:
        self.set_keys(process, added)

    @rule(process=st.integers(0, 1), removed=few_names)
    def delete(self, process: int, removed: list[bytes]) -> None:
        for name in removed:
            self.keyspaces[process].delete(0, name)
            self.gone(name)
        assert self.keyspaces[process].end_turn() is None

    @rule(process=st.integers(0, 1))
    def delete_what_was_seen(self, process: int) -> None:
        if self.scan is not None:
            self.delete(process, sorted(self.scan.seen))

    @rule(process=st.integers(0, 1), old=names, new=names)
    def rename(self, process: int, old: bytes, new: bytes) -> None:
        keyspace = self.keyspaces[process]
        record = keyspace.for_change(0, old)
        if record is not None and old != new:
            keyspace.move(record, 0, new)
            self.gone(old)
            self.gone(new)
            self.keys.add(new)
        assert keyspace.end_turn() is None

    @rule(process=st.integers(0, 1), names=few_names)
    def expire(self, process: int, names: list[bytes]) -> None:
        for name in names:
            record = self.keyspaces[process].for_change(0, name)
            if record is not None:
                self.keyspaces[process].set_expiry(record, self.clock.ms + 1)
                self.gone(name)
        assert self.keyspaces[process].end_turn() is None
        self.clock.ms += 1

    @rule(process=st.integers(0, 1), numbers=st.lists(member_numbers, max_size=200), adds=st.booleans())
    def change_members(self, process: int, numbers: list[int], adds: bool) -> None:
        keyspace = self.keyspaces[process]
        some = [b"member%d" % number for number in dict.fromkeys(numbers)]
        a_set, a_hash, ranked = (keyspace.for_change(1, name) for name in COLLECTIONS)
        assert isinstance(a_set, Set) and isinstance(a_hash, Hash) and isinstance(ranked, SortedSet)
        if adds:
            a_set.add(some)
            a_hash.put([word for name in some for word in (name, b"")])
            for name in some:
                ranked.put(name, 2.0)
            self.members.update(some)
        elif len(self.members.difference(some)) > 1:
            a_set.remove(some)
            a_hash.remove(some)
            ranked.remove(some)
            self.members.difference_update(some)
            for page in self.pages.values():
                page.due.difference_update(some)
        assert keyspace.end_turn() is None

    @rule()
    def restart(self) -> None:
        self.environment.close()
        self.environment = open_data(Path(self.folder.name) / "data.mdb", 1 << 24)
        self.open_keyspaces()

    # -- the scans

    @rule(process=st.integers(0, 1), count=st.integers(1, 60))
    def step(self, process: int, count: int) -> None:
        keyspace = self.keyspaces[process]
        size = keyspace.databases.size(0)
        if self.scan is None:
            self.scan = Scan(set(self.keys), size)
        cursor, found, over = keyspace.databases.scan(0, self.scan.cursor, count)
        for name in over:
            assert keyspace.find(0, name) is None
        assert keyspace.end_turn() is None
        if self.scan.step(cursor, [name for name, _ in found], size):
            self.scan = None

    @rule(process=st.integers(0, 1), name=st.sampled_from(COLLECTIONS), count=st.integers(1, 200))
    def page(self, process: int, name: bytes, count: int) -> None:
        keyspace = self.keyspaces[process]
        found = keyspace.find(1, name)
        assert isinstance(found, Set | Hash | SortedSet)
        scan = self.pages.setdefault(name, Scan(set(self.members), len(found)))
        cursor, page = found.page(scan.cursor, count)
        seen = [each if isinstance(each, bytes) else each[0] for each in page]
        if scan.step(cursor, seen, len(found)):
            del self.pages[name]
        keyspace.end_turn()

    @precondition(lambda self: self.scan is not None or self.pages)
    @rule()
    def go_on_to_the_end(self) -> None:
        while self.scan is not None:
            self.step(0, 10)
        for name in list(self.pages):
            while name in self.pages:
                self.page(1, name, 50)


TestScans = Scans.TestCase
TestScans.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
