"""What another process has changed is read anew; where the environment knows what that is, nothing else is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from engines import open_data

from rlite_pubsub.keyspace.hashes import Hash
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.records import Record, Text
from rlite_pubsub.storage.environment import Environment

NAMES = [b"%d" % number for number in range(12)]


@pytest.fixture(params=["pages", "log"])
def data(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Environment]:
    monkeypatch.setenv("RLITE_STORE_ENGINE", request.param)
    opened = open_data(tmp_path / "data.mdb", 1 << 30)
    yield opened
    opened.close()


def two(data: Environment) -> tuple[Keyspace, Keyspace]:
    """As two processes have them."""
    return Keyspace(data, lambda: 1000), Keyspace(data, lambda: 1000)


def seen(keyspace: Keyspace, database: int) -> list[object]:
    found: list[object] = [content(keyspace, keyspace.find(database, name)) for name in NAMES]
    found.append(keyspace.stored.space(database).counts()[1:])
    assert keyspace.end_turn() is None
    return found


def content(keyspace: Keyspace, record: Record | None) -> object:
    if isinstance(record, Text):
        return record.value, record.expires_ms
    if isinstance(record, List):
        return record.slice(0, len(record)), record.expires_ms
    if isinstance(record, Hash):
        return sorted(record.pairs()), record.expires_ms
    return None


def test_what_nobody_else_has_changed_stays_in_the_cache(data: Environment) -> None:
    mine, other = two(data)
    for name in (b"a", b"b", b"c"):
        mine.put_string(0, name, b"1")
    mine.end_turn()
    assert mine.find(0, b"none") is None
    kept = mine.find(0, b"a")
    mine.end_turn()
    other.put_string(0, b"b", b"2")
    other.delete(0, b"c")
    other.put_string(0, b"none", b"3")
    other.end_turn()
    changed = mine.find(0, b"b")
    assert isinstance(changed, Text) and changed.value == b"2"
    assert mine.find(0, b"c") is None and mine.find(0, b"none") is not None
    assert (mine.find(0, b"a") is kept) == data.knows_changes
    mine.end_turn()


def test_a_database_that_another_has_emptied_or_swapped_is_read_anew(data: Environment) -> None:
    mine, other = two(data)
    mine.put_string(0, b"a", b"0")
    mine.put_string(1, b"a", b"1")
    mine.end_turn()
    other.stored.swap(0, 1)
    other.end_turn()
    assert [content(mine, mine.find(database, b"a")) for database in (0, 1)] == [(b"1", 0), (b"0", 0)]
    mine.end_turn()
    other.stored.flush(0)
    other.end_turn()
    assert [content(mine, mine.find(database, b"a")) for database in (0, 1)] == [None, (b"0", 0)]
    mine.end_turn()


@pytest.mark.parametrize("seed", range(4))
def test_each_of_three_sees_what_all_have_done(data: Environment, seed: int) -> None:
    dice = random.Random(seed)
    everybody = [*two(data), Keyspace(data, lambda: 1000)]
    for _ in range(300):
        keyspace, database, name = dice.choice(everybody), dice.randrange(2), dice.choice(NAMES)
        for _ in range(dice.randrange(1, 4)):
            change(dice, keyspace, database, name)
        assert keyspace.end_turn() is None
        if dice.random() < 0.3:
            fresh = Keyspace(data, lambda: 1000)
            looked_at = dice.choice(everybody)
            for each in (0, 1):
                assert seen(looked_at, each) == seen(fresh, each)


def change(dice: random.Random, keyspace: Keyspace, database: int, name: bytes) -> None:
    """Something that a command does."""
    choice, value = dice.randrange(9), b"%d" % dice.randrange(1000)
    if choice <= 1:
        keyspace.put_string(database, name, value, expires_ms=dice.choice([0, 5000]))
    elif choice == 2:
        keyspace.delete(database, name)
    elif choice == 3:
        found = keyspace.for_change(database, name)
        if found is not None:
            keyspace.set_expiry(found, 9000)
    elif choice == 4:
        found = keyspace.for_change(database, name)
        if found is not None:
            keyspace.move(found, 1 - database, dice.choice(NAMES))
    elif choice == 5 and not dice.randrange(10):
        keyspace.stored.flush(database)
    elif choice == 5 and not dice.randrange(10):
        keyspace.stored.swap(0, 1)
    elif choice <= 7:
        found = keyspace.for_change(database, name)
        if found is None:
            found = keyspace.create(List, database, name)
        if isinstance(found, List):
            found.push([value * 100] * dice.randrange(1, 300), left=bool(dice.randrange(2)))
    else:
        found = keyspace.for_change(database, name)
        if found is None:
            found = keyspace.create(Hash, database, name)
        if isinstance(found, Hash):
            found.put([word for number in range(dice.randrange(1, 200)) for word in (b"%d" % number, value)])
