"""Walks over records end where their prefix does."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from rlite_pubsub.storage import databases
from rlite_pubsub.storage.environment import Environment, Txn
from rlite_pubsub.storage.keys import digests, fields, garbage, key_records

LARGE = bytes(30 << 20)
EXPIRY = bytes(8) + b"space and its digest"


def walked(txn: Txn) -> None:
    assert list(databases.items(txn, databases.EXPIRIES)) == [(databases.EXPIRIES + EXPIRY, b"")]


def expired(txn: Txn) -> None:
    assert len(key_records.expired(txn, 1 << 62, 10)) == 1


def scanned(txn: Txn) -> None:
    assert digests.page(txn, databases.EXPIRIES, 0, 10, 1) == (0, [b""])


def fields_due(txn: Txn) -> None:
    assert not fields.due(txn, 1 << 62, 10)


def garbage_found(txn: Txn) -> None:
    assert not garbage.exists(txn)


def random_keys(txn: Txn) -> None:
    assert not list(key_records.walk(txn, 0)) and not key_records.run(txn, 0, b"", 10, 0)


@pytest.mark.parametrize("walk", [walked, expired, scanned, fields_due, garbage_found, random_keys])
def test_a_walk_does_not_read_the_large_value_behind_its_end(
    environment: Environment, walk: Callable[[Txn], None]
) -> None:
    """A server that had a string of 100 MB copied it with each look at what has expired, and did nothing else."""

    def fill(txn: Txn) -> None:
        txn.put(databases.EXPIRIES + EXPIRY, b"")
        for prefix in (databases.ENTRIES, databases.GROUPS, databases.KEYS + b"\0\0\0\1", b"Y"):
            txn.put(prefix + b"large", LARGE)

    environment.write(fill)
    tracemalloc.start()
    try:
        environment.read(walk)
        assert tracemalloc.get_traced_memory()[1] < len(LARGE) // 2
    finally:
        tracemalloc.stop()
