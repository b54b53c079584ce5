"""The contents of a store's files, and who keeps their pages, for those who look after a folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlite_pubsub.cli.doctor.report import sizes_line
from rlite_pubsub.cli.target import must_exist
from rlite_pubsub.cli.text import shown_bytes

if TYPE_CHECKING:
    from rlite_pubsub.storage.environment import Environment
    from rlite_pubsub.storage.pages.readers import TableLine
    from rlite_pubsub.storage.store import Store

WATCHED_SECONDS = 3
"""How long a reader is watched before it is reported: a writer keeps a checkpoint for a second or two."""
PAUSE_SECONDS = 0.003


def sizes_of(environment: Environment) -> str:
    """Return the sizes in a line."""
    sizes = environment.account.sizes(sys.maxsize)
    return sizes_line(sizes.used, sizes.live, sizes.free, sizes.held, sizes.disk)


def _behind(environment: Environment) -> set[TableLine]:
    """Return the readers of older commits: a reader of the last one, such as a backup while nothing is written, keeps
    nothing from being reused."""
    last_commit = environment.last_commit()
    return {reader for reader in environment.account.readers() if reader.transaction < last_commit}


def readers_of(store: Store) -> Iterator[str]:
    """Readers that read for too long: none of our transactions is open for as long as we look."""
    from rlite_pubsub.storage.pages import noted, readers

    now_ms = int(time.time() * 1000)
    environments = (store.live, store.data)
    store.data.safety.let_go()
    left = {environment: _behind(environment) for environment in environments}
    end = time.monotonic() + WATCHED_SECONDS
    while any(left.values()) and time.monotonic() < end:
        time.sleep(PAUSE_SECONDS)
        left = {environment: left[environment] & _behind(environment) for environment in environments}
    for environment, readers_left in left.items():
        for reader in sorted(readers_left, key=lambda reader: reader.transaction):
            process = environment.account.process_of(reader.number)
            if process != os.getpid():
                since_ms = store.live.read(lambda txn: noted.all(txn, environment)).get(reader)  # noqa: B023
                age = f"for {(now_ms - since_ms) // 1000} s" if since_ms else f"for more than {WATCHED_SECONDS} s"
                held = environment.account.held_by(reader, sys.maxsize)
                yield (
                    f"reader     {readers.name_of(reader.number, process)} reads {environment.path.name} "
                    f"{age}, and keeps {shown_bytes(held)} from being reused"
                )


def existing(folder: str) -> Store:
    """Open it, once a process of its own has read all of it. Raises FileNotFoundError and StoreError."""
    from rlite_pubsub.storage.store import Store

    must_exist(folder)
    return Store.open(folder, proves=True)
