"""An environment for data without a store around it: LMDB's, or the log's if RLITE_STORE_ENGINE=log."""

from __future__ import annotations

import os
from pathlib import Path

from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.locks.writer_lock import WriterLocks
from rlite_pubsub.storage.log.environment import LogEnvironment
from rlite_pubsub.storage.log.writer import LogWriterLock

WINDOW_BYTES = 64 << 10


def open_data(path: Path, quota_bytes: int) -> Environment:
    """Nobody else has it open."""
    if os.environ.get("RLITE_STORE_ENGINE") != "log":
        return LmdbEnvironment(path, "no", quota_bytes=quota_bytes)
    writer = LogWriterLock(WriterLocks(path.parent, is_alone=True), is_alone=True)
    return LogEnvironment(
        path, "no", quota_bytes=quota_bytes, writer=writer, is_alone=True, window_bytes=WINDOW_BYTES
    )
