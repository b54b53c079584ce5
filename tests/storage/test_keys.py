"""The walks over one of the store's databases: they end where it ends, whatever stands beside it."""

from __future__ import annotations

import pytest

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn

NEIGHBOURS = [b"A", b"B\xff", b"D", b"D1a", b"\xff" * 9]
"""Around what begins with `C`."""


def put(txn: Txn, count: int) -> list[tuple[bytes, bytes]]:
    """The neighbours, and records that begin with `C`, which are returned."""
    for key in NEIGHBOURS:
        txn.put(key, b"neighbour")
    rows = [(b"C" + number.to_bytes(4, "big"), b"%d" % number) for number in range(count)]
    for key, value in rows:
        txn.put(key, value)
    return rows


@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 600])
@pytest.mark.parametrize("to", [b"A1", b"CC", b"D0", b"E"])
def test_a_copy_has_every_record_and_no_neighbours(environment: Environment, count: int, to: bytes) -> None:
    def live(txn: Txn) -> None:
        rows = put(txn, count)
        databases.copy_all(txn, b"C\0", to)
        assert list(databases.items(txn, b"C\0")) == rows
        assert list(databases.items(txn, to)) == [(to + key[2:], value) for key, value in rows]
        assert sum(1 for _ in databases.items(txn, b"")) == len(NEIGHBOURS) + 2 * count

    environment.write(live)


@pytest.mark.parametrize(("wanted", "found"), [(3, None), (4, 4), (5, 4), (8, 8), (9, 8), (255, 8)])
@pytest.mark.parametrize("neighbours", [[], [b"B"], [b"D"], NEIGHBOURS])
def test_the_last_up_to_a_key_is_of_the_prefix_wherever_it_stands(
    environment: Environment, neighbours: list[bytes], wanted: int, found: int | None
) -> None:
    def live(txn: Txn) -> None:
        for key in (*neighbours, b"C\4", b"C\10"):
            txn.put(key, b"value of " + key)
        expected = None if found is None else (b"C%c" % found, b"value of C%c" % found)
        assert databases.last_up_to(txn, b"C", b"C%c" % wanted) == expected
        assert databases.last_up_to(txn, b"CC", b"CC%c" % wanted) is None

    environment.write(live)


def test_nothing_is_last_in_an_empty_store(environment: Environment) -> None:
    environment.write(lambda txn: [txn.delete(key) for key, _ in list(databases.items(txn, b""))])
    assert environment.read(lambda txn: databases.last_up_to(txn, b"C", b"C1")) is None
