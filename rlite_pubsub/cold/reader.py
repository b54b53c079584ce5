"""Row groups of a store's blocks, for processes that have the store open. Arrow is imported when the first of them is
read."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from rlite_pubsub.cold.place import Place
    from rlite_pubsub.storage.cold.cold_blocks import BlockInfo
    from rlite_pubsub.storage.cold.cold_home import ColdHome
    from rlite_pubsub.storage.topics.chunks import Chunk


def is_installed() -> bool:
    """Return whether blocks can be read and written here."""
    return importlib.util.find_spec("pyarrow") is not None


class BlockReader:
    """Reads the blocks of one store, in any thread. Raises ColdError."""

    def __init__(self, folder: Path, home: ColdHome | None) -> None:
        self._folder = folder
        self._url = "" if home is None else home.url
        self._place: Place | None = None

    def __call__(self, block: BlockInfo, number: int) -> Chunk:
        from rlite_pubsub.cold.block import read_group

        return read_group(self._open(), block, number)

    def _open(self) -> Place:
        from rlite_pubsub.cold.places import open_place

        if self._place is None:
            self._place = open_place(self._url, self._folder)
        return self._place
