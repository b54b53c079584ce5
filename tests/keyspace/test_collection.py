"""Lists and sets over turns: what one turn did every process finds, and nothing is left of what is gone."""

from __future__ import annotations

import random

import pytest

from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.lists import List
from rlite_pubsub.keyspace.sets import Set
from rlite_pubsub.keyspace.sweeping import sweep_some
from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment


def keyspace(environment: Environment) -> Keyspace:
    return Keyspace(environment, lambda: 1000)


def content(environment: Environment) -> int:
    """How many elements and members the store has."""
    return environment.read(
        lambda txn: sum(1 for byte in (databases.ELEMENTS, databases.MEMBERS) for _ in databases.items(txn, byte))
    )


def test_a_list_is_what_a_list_would_be_in_every_process(environment: Environment) -> None:
    one, other = keyspace(environment), keyspace(environment)
    luck = random.Random(3)
    model: list[bytes] = []
    one.create(List, 0, b"l")
    assert one.end_turn() is None
    for step in range(2000):
        here = luck.choice((one, other))
        found = here.for_change(0, b"l")
        assert isinstance(found, List)
        left = luck.random() < 0.5
        if luck.random() < 0.6:
            added = [b"%d" % luck.randrange(5) for _ in range(luck.randrange(1, 4))]
            found.push(added, left=left)
            model = [*added[::-1], *model] if left else [*model, *added]
        elif luck.random() < 0.8:
            count = luck.randrange(4)
            expected = model[:count] if left else model[: -count - 1 : -1] if count else []
            model = model[len(expected) :] if left else model[: len(model) - len(expected)]
            assert found.pop(count, left=left) == expected
        else:
            assert found.remove(b"1", 0) == model.count(b"1")
            model = [element for element in model if element != b"1"]
        assert here.end_turn() is None
        if step % 50 == 0:
            seen = other.find(0, b"l")
            assert isinstance(seen, List) and seen.slice(0, len(seen)) == model
            other.end_turn()
    assert content(environment) == len(model)


def test_a_set_has_each_member_once(environment: Environment) -> None:
    here = keyspace(environment)
    found = here.create(Set, 0, b"s")
    assert found.add([b"a", b"b", b"a"]) == 2
    assert here.end_turn() is None
    found = here.for_change(0, b"s")  # type: ignore[assignment]
    assert found.add([b"a", b"c"]) == 1 and found.has(b"c") and not found.has(b"d")
    assert found.remove([b"b", b"d"]) == 1
    assert len(found) == 2 and set(found.members()) == {b"a", b"c"}
    assert here.end_turn() is None
    assert content(environment) == 2


@pytest.mark.parametrize("size", [3, 500])
def test_nothing_is_left_of_a_collection_that_is_deleted(environment: Environment, size: int) -> None:
    here = keyspace(environment)
    here.create(List, 0, b"l").push([b"x"] * size, left=True)
    here.create(Set, 0, b"s").add([b"%d" % number for number in range(size)])
    assert here.end_turn() is None
    assert here.delete(0, b"l") and here.delete(0, b"s")
    assert here.end_turn() is None
    while sweep_some(here.parts, 100):
        assert here.end_turn() is None
    here.end_turn()
    assert content(environment) == 0
    assert here.find(0, b"l") is None and here.databases.size(0) == 0


def test_a_flushed_database_s_collections_are_swept_up(environment: Environment) -> None:
    here = keyspace(environment)
    here.create(List, 0, b"l").push([b"x"] * 500, left=True)
    here.end_turn()
    here.databases.flush(0)
    here.end_turn()
    while sweep_some(here.parts, 100):
        here.end_turn()
    here.end_turn()
    assert content(environment) == 0


def test_a_copy_and_a_renamed_one_keep_their_content(environment: Environment) -> None:
    here = keyspace(environment)
    here.create(List, 0, b"l").push([b"1", b"2", b"3"], left=False)
    here.end_turn()
    found = here.for_change(0, b"l")
    assert found is not None
    here.copy(found, 1, b"copy")
    here.move(found, 2, b"moved")
    assert here.end_turn() is None
    here.stored.forget()
    for place in ((1, b"copy"), (2, b"moved")):
        seen = here.find(*place)
        assert isinstance(seen, List) and seen.slice(0, 3) == [b"1", b"2", b"3"]
    assert here.find(0, b"l") is None
    here.end_turn()
