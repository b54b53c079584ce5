"""A cold store with a gate, in a server that has this folder in PYTHONPATH: nobody comes through while the file
RLITE_COLD_GATE is there, and who reads from the event loop's thread is noted in RLITE_COLD_NOTES."""

from __future__ import annotations

import os
import threading
import time
import traceback
from typing import TYPE_CHECKING

from rlite_pubsub.cold.reader import BlockReader

if TYPE_CHECKING:
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
    from rlite_pubsub.storage.topics.chunks import Chunk

_read = BlockReader.__call__
_gate, _notes = os.environ.get("RLITE_COLD_GATE", ""), os.environ.get("RLITE_COLD_NOTES", "")


def _read_behind_gate(reader: BlockReader, block: BlockInfo, number: int) -> Chunk:
    if _notes and threading.current_thread() is threading.main_thread():
        with open(_notes, "a") as file:
            file.write("".join(traceback.format_stack(limit=30)) + "\n")
    while _gate and os.path.exists(_gate):
        time.sleep(0.002)
    return _read(reader, block, number)


BlockReader.__call__ = _read_behind_gate  # type: ignore[method-assign]
