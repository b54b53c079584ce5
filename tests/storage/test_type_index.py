"""The index of types: what was taken in is found, type by type, and what was trimmed is swept."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.topics import entry_ids, type_index
from rlite_pubsub.storage.topics.entry_ids import Id

TOPIC, NEXT = 7, 8


def packed(numbers: range | list[int]) -> list[bytes]:
    return [entry_ids.pack((1, number)) for number in numbers]


def found(txn: Txn, name: bytes, after: Id = entry_ids.MIN, limit: int = 10**6) -> list[int]:
    ids = type_index.after(txn, TOPIC, type_index.digest(name), after, limit)
    return [entry_ids.unpack(each)[1] for each in ids]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.sampled_from([b"", b"a", b"b" * 2000]), min_size=1, max_size=400), max_size=5))
def test_what_was_taken_in_is_found_by_its_type_after_any_id(
    environment: Environment, turns: list[list[bytes]]
) -> None:
    said: list[bytes] = []
    environment.write(lambda txn: databases.delete_all(txn, databases.EVENT_TYPES))
    for turn in turns:
        by_type: dict[bytes, list[bytes]] = {}
        for number, name in enumerate(turn, len(said) + 1):
            by_type.setdefault(name, []).extend(packed([number]))
        said += turn
        last = 1, len(said)
        environment.write(lambda txn, by_type=by_type, last=last: type_index.extend(txn, TOPIC, by_type, last))
    expected = {name: [at for at, each in enumerate(said, 1) if each == name] for name in said}

    def look(txn: Txn) -> None:
        assert {each.name: each.entries for each in type_index.types(txn, TOPIC)} == {
            name: len(ids) for name, ids in expected.items()
        }
        for name, ids in expected.items():
            for after in (0, 1, len(said) // 2, len(said)):
                assert found(txn, name, (1, after)) == [each for each in ids if each > after]
        assert found(txn, b"unknown") == []

    environment.read(look)


def test_limit_bounds_what_is_read(environment: Environment) -> None:
    environment.write(lambda txn: type_index.extend(txn, TOPIC, {b"a": packed(range(2000))}, (1, 1999)))
    some = environment.read(lambda txn: found(txn, b"a", limit=300))
    assert 300 <= len(some) <= 300 + type_index.ROW_IDS and some == list(range(len(some)))


def test_two_topics_know_nothing_of_each_other(environment: Environment) -> None:
    environment.write(lambda txn: type_index.extend(txn, NEXT, {b"a": packed([5])}, (1, 5)))
    assert environment.read(lambda txn: (found(txn, b"a"), type_index.indexed(txn, TOPIC))) == ([], entry_ids.MIN)
    assert environment.read(lambda txn: type_index.indexed(txn, NEXT)) == (1, 5)


def test_what_was_trimmed_is_swept_in_steps_and_types_without_entries_go(environment: Environment) -> None:
    types = {b"%d" % number: packed(range(number, 6000, 20)) for number in range(20)} | {b"old": packed([1])}
    environment.write(lambda txn: type_index.extend(txn, TOPIC, types, (1, 6000)))

    def swept(trimmed: int) -> int:
        steps, start = 0, b""
        while steps == 0 or start:
            start = environment.write(lambda txn, at=start: type_index.sweep(txn, TOPIC, at, (1, trimmed), 6))  # type: ignore[misc]
            steps += 1
            assert steps < 100
        return steps

    assert swept(5500) > 3
    left = {each.name: each.entries for each in environment.read(lambda txn: list(type_index.types(txn, TOPIC)))}
    assert b"old" not in left and len(left) == 20
    for name, entries in left.items():
        ids = environment.read(lambda txn, name=name: found(txn, name))  # type: ignore[misc]
        assert len(ids) == entries <= type_index.ROW_IDS and set(range(5501, 6000)) & set(ids)
    swept(6000)
    assert environment.read(lambda txn: list(type_index.types(txn, TOPIC))) == []
    assert environment.read(lambda txn: [key for key, _ in databases.items(txn, databases.EVENT_TYPES)][1:]) == []
