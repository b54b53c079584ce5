"""An environment for data without a store around it: LMDB's, or the log's if RLITE_STORE_ENGINE=log."""

from __future__ import annotations

import os
from pathlib import Path

from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.lmdb_environment import FIRST_MAP_BYTES, LmdbEnvironment
from rlite_pubsub.storage.locks.writer_lock import WriterLocks
from rlite_pubsub.storage.log.environment import LogEnvironment
from rlite_pubsub.storage.log.writer import LogWriterLock

WINDOW_BYTES = 64 << 10


def open_data(path: Path, quota_bytes: int, first_map_bytes: int = FIRST_MAP_BYTES) -> Environment:
    """Nobody else has it open. LMDB's map is so large at first; tests that have a turn open want it to be enough."""
    if os.environ.get("RLITE_STORE_ENGINE") != "log":
        return LmdbEnvironment(path, "no", quota_bytes=quota_bytes, first_map_bytes=first_map_bytes)
    writer = LogWriterLock(WriterLocks(path.parent, is_alone=True), is_alone=True)
    return LogEnvironment(
        path, "no", quota_bytes=quota_bytes, writer=writer, is_alone=True, window_bytes=WINDOW_BYTES
    )
