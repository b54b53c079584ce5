"""What lies beside a store that has no data yet, and may be taken for the store's data: the files of a Redis, or what
is left of a store without its data.mdb. A server that begins empty there says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.storage.log.home import is_there

_DATA: Final = "data.mdb"
_COMPANIONS: Final = ("data.journal", "data.delta", "data.safe")
"""What only a store with data has."""


def leftovers(settings: Settings) -> list[str]:
    """Return what to say of them. Called before the store is opened. Never fails."""
    folder = Path(os.path.abspath(settings["dir"].decode(errors="surrogateescape")))
    if is_there(folder):
        return []
    return [*_of_store(folder), *_of_redis(folder, settings)]


def _of_store(folder: Path) -> Iterator[str]:
    there = [name for name in _COMPANIONS if _exists(folder / name)] or _logs_in(folder)
    if there:
        yield (
            f"{folder} has {', '.join(there)}, but no {_DATA}: the keys that were in it are gone, and this server "
            f"begins without them. If {_DATA} was moved, stop, and put it back; if it was lost, stop, and make a store "
            "from a backup: rlite-pubsub restore."
        )


def _logs_in(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.glob("data.log.*"))
    except OSError:
        return []


def _of_redis(folder: Path, settings: Settings) -> Iterator[str]:
    names = [settings[name].decode(errors="surrogateescape") for name in ("appenddirname", "dbfilename")]
    for place in dict.fromkeys((folder, Path.cwd())):
        found = next((place / name for name in names if name and _exists(place / name)), None)
        if found is not None:
            yield (
                f"{found} has the keys of a Redis, and this server begins without them, with an empty store in "
                f"{folder}. To bring them in, stop, and: rlite-pubsub import --merge {found} {folder}"
            )
            return


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
