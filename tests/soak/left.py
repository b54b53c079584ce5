"""What the dead have left in a store: nobody who lives needs it."""

from __future__ import annotations

import os
from pathlib import Path

from rlite_pubsub.storage import keys
from rlite_pubsub.storage.store import Store

COUNTERS = {keys.FORMAT, keys.BOOT, keys.ROUTES_VERSION, keys.LAST_SEQUENCE}
"""They are the store's own."""


def left_in(folder: Path) -> list[object]:
    """Records of any kind, lock files and doorbells, once all who subscribed have ended."""
    with Store.open(folder) as store:
        records = store.live.read(lambda txn: list(txn.cursor().iternext(values=False)))
        return [*(key for key in records if key not in COUNTERS), *os.listdir(store.subscribers_folder)]
