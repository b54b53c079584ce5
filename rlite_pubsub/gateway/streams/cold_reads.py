"""Reading what may be in the cold store: only the request waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rlite_pubsub.keyspace.topic.cold_shelf import ColdMiss

if TYPE_CHECKING:
    from rlite_pubsub.keyspace.keyspace import Keyspace

T = TypeVar("T")


def attempt(keyspace: Keyspace, read: Callable[[], T]) -> T:
    """Read. ColdMiss if something must be fetched first."""
    cold = keyspace.cold.shelf
    if cold is None:
        return read()
    with cold.waiting():
        return read()


async def fetched(keyspace: Keyspace, read: Callable[[], T]) -> T:
    """Read, once all that it needs is here. Raises ColdUnreadable."""
    pins: list[Callable[[], None]] = []
    try:
        while True:
            try:
                return attempt(keyspace, read)
            except ColdMiss as miss:
                arrived = asyncio.Event()
                pins.append(miss.shelf.fetch(miss, arrived.set))
                await arrived.wait()
    finally:
        for unpin in pins:
            unpin()
