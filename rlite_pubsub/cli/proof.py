"""`doctor --deep`: every record is read, and what refers to something finds it. What others change meanwhile may be
told as a fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis

import rlite_pubsub
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.mail import proof
from rlite_pubsub.storage.store import Store

_ALL: dict[bytes, tuple[str, tuple[Any, ...]]] = {
    b"list": ("LLEN", ("LRANGE", 0, -1)),
    b"set": ("SCARD", ("SMEMBERS",)),
}
"""How many elements there are, and which. (Of a hash some may be over their time, and are counted until they go.)"""


def faults(store: Store, folder: str) -> Iterator[str]:
    """What is wrong with the store, one line for each."""
    for environment, are_durable in ((store.live, False), (store.data, True)):
        for fault in environment.read(lambda txn: list(proof.faults(txn, are_durable=are_durable))):  # noqa: B023
            yield f"{environment.path.name}: {fault}"
    for database in range(Settings()["databases"]):
        yield from _of_keys(folder, database)


def _of_keys(folder: str, database: int) -> Iterator[str]:
    """A dump has all that a key holds, of whatever type: so all of it is read and understood."""
    with rlite_pubsub.Redis(folder, db=database) as client:
        for key in client.scan_iter(count=1000):
            try:
                if client.dump(key) is not None:
                    _look_at(client, key, client.type(key))
            except (redis.RedisError, StoreError, ValueError, LookupError) as failure:
                yield f"key {key!r} of database {database}: {failure}"


def _look_at(client: Any, key: bytes, kind: bytes) -> None:
    """It holds as much as it says. Raises ValueError."""
    if kind == b"stream":
        _look_at_topic(client, key)
    elif kind in _ALL:
        count, everything = _ALL[kind]
        says = client.execute_command(count, key)
        holds = len(client.execute_command(everything[0], key, *everything[1:]))
        if says != holds:
            raise ValueError(f"it says that it has {says} elements, and has {holds}")


def _look_at_topic(client: Any, key: bytes) -> None:
    """Its entries are as many as it says, and in order. Raises ValueError."""
    entries, last = 0, "-"
    while page := client.xrange(key, f"({last}" if entries else "-", "+", 1000):
        ids = [tuple(map(int, id.split(b"-"))) for id, _ in page]
        if ids != sorted(set(ids)):
            raise ValueError(f"its entries are out of order behind {last}")
        entries += len(page)
        last = page[-1][0].decode()
    length = client.xlen(key)
    if length != entries:
        raise ValueError(f"it says that it has {length} entries, and has {entries}")
