"""INFO's section Store: the contents of its files, live pages and free ones apart, and who pins pages for long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.engine.stats.warnings import disk_of
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.storage.store import Store

LINES = 20
"""How many readers get a line of their own."""


def store(engine: Engine) -> Iterator[tuple[str, object]]:
    """Yield the figures of both files: data.mdb outlives a reboot, and live.mdb is needed by living processes only."""
    if engine.store is not None:
        try:
            yield from list(_fields(engine.store))
        except StoreError as failure:
            yield "store_unread", failure


def _fields(store: Store) -> Iterator[tuple[str, object]]:
    old = []
    for name, environment in (("data", store.data), ("live", store.live)):
        sizes = environment.account.sizes()
        yield f"{name}_used_bytes", sizes.used
        yield f"{name}_live_bytes", sizes.live
        yield f"{name}_free_bytes", sizes.free
        yield f"{name}_held_bytes", sizes.held
        yield f"{name}_disk_bytes", sizes.disk
        old += [(environment, each) for each in environment.account.old_readers()]
    yield "store_disk_bytes", store.disk_use.size_bytes()
    disk = disk_of(store)
    if disk is not None:
        yield "filesystem_bytes", disk[0]
        yield "filesystem_free_bytes", disk[1]
    yield "store_full", int(store.data.room.full is not None)
    yield "old_readers", len(old)
    yield "oldest_reader_age_ms", int(max((each.age_s for _, each in old), default=0.0) * 1000)
    for number, (environment, each) in enumerate(old[:LINES]):
        yield (
            f"old_reader{number}",
            f"file={environment.path.name},pid={each.pid},state={each.state.replace(' ', '-')},"
            f"age_ms={int(each.age_s * 1000)},held_bytes={environment.account.held_by(each.reader)}",
        )
