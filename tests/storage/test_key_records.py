"""Keys in the store: under digests, by database, in the order in which they expire; and what becomes of garbage."""

from __future__ import annotations

import pytest

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.keys import garbage, key_records
from rlite_pubsub.storage.keys.key_records import STRING, TOPIC, KeyRecord, Space


def put(txn: Txn, space: int, name: bytes, expires_ms: int = 0) -> bytes:
    place = key_records.place(space, name)
    key_records.put(txn, place, key_records.pack(STRING, 0, expires_ms, 1, name, b"value"))
    key_records.set_expiry(txn, place, 0, expires_ms)
    return place


@pytest.mark.parametrize("name", [b"", b"\0", b"k" * 511, b"long" * 100_000, bytes(range(256))])
def test_names_of_any_bytes_and_any_length_come_back(environment: Environment, name: bytes) -> None:
    record = KeyRecord(STRING, 2, 1_700_000_000_000, 9, name, b"\0body\xff" * 1000)

    def write(txn: Txn) -> None:
        key_records.put(txn, key_records.place(1, name), key_records.pack(*record))

    environment.write(write)
    assert environment.read(lambda txn: key_records.get(txn, key_records.place(1, name))) == record
    assert environment.read(lambda txn: key_records.get(txn, key_records.place(2, name))) is None
    assert environment.read(lambda txn: [found[1:] for found in key_records.walk(txn, 1)]) == [
        (STRING, 1_700_000_000_000, name)
    ]


def test_a_walk_stays_within_its_space_and_goes_on_from_a_digest(environment: Environment) -> None:
    def write(txn: Txn) -> None:
        for space in (1, 2, 256):
            for number in range(50):
                put(txn, space, b"%d-%d" % (space, number))

    environment.write(write)
    walked = environment.read(lambda txn: list(key_records.walk(txn, 2)))
    assert {name for *_, name in walked} == {b"2-%d" % number for number in range(50)}
    assert [digest for digest, *_ in walked] == sorted(digest for digest, *_ in walked)
    assert environment.read(lambda txn: list(key_records.walk(txn, 2, walked[20][0]))) == walked[20:]


def test_numbers_are_never_given_twice(environment: Environment) -> None:
    first = environment.write(lambda txn: (key_records.new_space(txn), key_records.new_topic(txn)))
    second = environment.write(lambda txn: (key_records.new_space(txn), key_records.new_topic(txn)))
    assert (first, second) == ((1, 1), (2, 2))


def test_a_database_that_has_never_held_anything_has_no_space(environment: Environment) -> None:
    environment.write(lambda txn: key_records.put_space(txn, 15, Space(7, 3, 1)))
    assert environment.read(lambda txn: key_records.space(txn, 15)) == Space(7, 3, 1)
    assert environment.read(lambda txn: key_records.space(txn, 0)) == Space(0, 0, 0)
    assert environment.read(key_records.spaces) == {15: Space(7, 3, 1)}


def test_what_expires_first_is_found_first_and_nothing_before_its_time(environment: Environment) -> None:
    def write(txn: Txn) -> list[bytes]:
        return [put(txn, 1, b"%d" % when, when) for when in (3000, 1000, 2000, 4000)]

    third, first, second, fourth = environment.write(write)
    found = environment.read(lambda txn: key_records.expired(txn, 3000, 10))
    assert found == [(1000, first), (2000, second), (3000, third)]
    assert environment.read(lambda txn: key_records.expired(txn, 9999, 2)) == [(1000, first), (2000, second)]
    assert environment.read(lambda txn: key_records.expired(txn, 999, 10)) == []
    environment.write(lambda txn: key_records.set_expiry(txn, first, 1000, 5000))
    assert environment.read(lambda txn: key_records.expired(txn, 9999, 1)) == [(2000, second)]
    for place, when in ((first, 5000), (second, 2000), (third, 3000), (fourth, 4000)):
        environment.write(lambda txn, place=place, when=when: key_records.set_expiry(txn, place, when, 0))
    assert environment.read(lambda txn: key_records.expired(txn, 9999, 1)) == []


def test_a_flushed_space_is_swept_in_steps_and_leaves_nothing(environment: Environment) -> None:
    def write(txn: Txn) -> None:
        for number in range(25):
            put(txn, 1, b"%d" % number, 1000 + number)
        body = (8).to_bytes(8, "big")
        key_records.put(txn, key_records.place(1, b"log"), key_records.pack(TOPIC, 0, 0, 1, b"log", body))
        txn.put(databases.ENTRIES + body + bytes(16), b"a chunk")
        txn.put(databases.ENTRIES + (9).to_bytes(8, "big") + bytes(16), b"another topic's")
        put(txn, 2, b"stays")
        garbage.add(txn, garbage.SPACE, 1)

    environment.write(write)
    steps = 0
    while environment.read(garbage.exists):
        assert environment.write(lambda txn: garbage.sweep(txn, 10, 0)) <= 11
        steps += 1
    assert steps >= 3
    left = environment.read(lambda txn: [key[:1] for key, _ in txn.cursor()])
    assert sorted(left) == [databases.KEYS, databases.ENTRIES]
    assert environment.read(lambda txn: garbage.sweep(txn, 10, 0)) == 0
