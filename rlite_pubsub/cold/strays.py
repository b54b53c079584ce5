"""Blocks that nobody refers to: a worker that sealed, compacted or archived was killed behind their name and before the
rest, and whoever did its work anew gave the block another name.

Promise: nothing goes that anybody has, or may be about to have. A block is removed that no manifest has, nor the store
it says it is of, and that is a day old, as its place says; one that can't be read is left for `cold verify` to name.
"""

from __future__ import annotations

from collections.abc import Container

from rlite_pubsub.cold import footer
from rlite_pubsub.cold.errors import ColdError
from rlite_pubsub.cold.place import Place
from rlite_pubsub.cold.survey import Survey

STRAY_AGE_S = 24 * 3600.0
LOOK_MS = 3600 * 1000


def collect(place: Place, found: Survey, store: str, known: Container[str], now_s: float) -> list[str]:
    """Remove those of this store that are old enough; their paths. `found`: what is there. `known`: what the store has.
    Raises ColdError."""
    old = {
        file.path
        for file in place.files()
        if file.modified_s is not None and now_s - file.modified_s >= STRAY_AGE_S
    }
    removed = []
    for path in found.strays:
        if path in old and path not in known and _is_of(place, path, store):
            place.delete(path)
            removed.append(path)
    return removed


def _is_of(place: Place, path: str, store: str) -> bool:
    try:
        return footer.read(place, path).origin.store == store
    except (ColdError, FileNotFoundError):
        return False
