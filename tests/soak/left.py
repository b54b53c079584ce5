"""What the dead have left in a store: nobody who lives needs it."""

from __future__ import annotations

import os
from pathlib import Path

from rlite_pubsub.storage.store import Store


def left_in(folder: Path) -> list[object]:
    """Records of any kind, lock files and doorbells, once all who subscribed have ended. What begins with a zero byte
    is the store's own: its format, and counters."""
    with Store.open(folder) as store:
        records = store.live.read(lambda txn: list(txn.cursor().iternext(values=False)))
        kept = store.data.read(lambda txn: list(txn.cursor().iternext(values=False)))
        own = [key for key in records + kept if not key.startswith(b"\0")]
        return [*own, *os.listdir(store.subscribers_folder)]
