"""An environment in memory: for this process alone, and gone with it.

LMDB needs a file, so it gets one where files are memory (or, without such a place, one that is never synced), and the
file loses its name as soon as it is open: nobody else finds it, and nothing of it is left behind, however the process
ends.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from rlite_pubsub.storage.errors import StoreUnwritable
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment

EPHEMERAL = b"#ephemeral"
"""The ending of names of topics that are kept here."""
MAX_BYTES = 1 << 30
"""The size of everything that is kept in memory."""
_SHARED_MEMORY = Path("/dev/shm")


def open_memory() -> LmdbEnvironment:
    """Open a new, empty one. Raises StoreError."""
    where = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    try:
        folder = Path(tempfile.mkdtemp(prefix="rlite-memory-", dir=where))
    except OSError as error:
        raise StoreUnwritable(where, os.strerror(error.errno or 0)) from error
    try:
        return LmdbEnvironment(folder / "memory.mdb", "no", quota_bytes=MAX_BYTES, first_map_bytes=MAX_BYTES)
    finally:
        shutil.rmtree(folder)
