"""What the process that has a store's links says of them, for all who have the store, and the lock that says who it is.

    links/state.json    in the store's folder; replaced as a whole once a second
    links/lock          held with flock by the process that has the links
    links/server        held with flock by the server that has started it
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rlite_pubsub import permissions

_STATE: Final = "state.json"
OLD_MS: Final = 5000
"""A state that is older is nobody's any more."""


@dataclass
class LinkState:
    """Of one link. No password is in it."""

    name: str
    url: str
    state: str = "down"
    since_ms: int = 0
    error: str = ""
    is_store: bool = False
    """The other side is a store like this one."""
    failures: int = 0
    messages_in: int = 0
    messages_out: int = 0
    dropped: int = 0
    refused: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    entries_in: int = 0
    entries_out: int = 0
    lag: int = 0
    """Entries that are still to be brought over."""
    lag_ms: int = 0
    """For how long the oldest of them has been waiting."""
    gaps: int = 0
    """Entries that were trimmed before they could be brought over."""
    topics: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class LinksState:
    """Of all."""

    at_ms: int = 0
    guests: list[str] = field(default_factory=list)
    """The links of other stores that lead here, by their names there."""
    repeated: int = 0
    """Messages that came again, or were overtaken, and were not handed on."""
    links: list[LinkState] = field(default_factory=list)


class Lock:
    """A place that one process has at a time."""

    def __init__(self, store: str | os.PathLike[str], name: str = "lock") -> None:
        """Raises OSError."""
        folder = _folder(Path(store))
        self._descriptor = permissions.opened(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW)

    def take(self) -> bool:
        """False: another one has it."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Let it go."""
        os.close(self._descriptor)


def write(store: Path, state: LinksState) -> None:
    """Raises OSError."""
    path = _folder(store) / _STATE
    temporary = path.with_name(f".{_STATE}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(permissions.opened(temporary, flags), "w") as file:
        json.dump(asdict(state), file)
    temporary.rename(path)


def read(store: Path) -> LinksState | None:
    """None: nobody has ever had links, or what is there can't be read."""
    try:
        said = json.loads((store / "links" / _STATE).read_text())
        links = [LinkState(**each) for each in said["links"]]
        return LinksState(said["at_ms"], said["guests"], said["repeated"], links)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _folder(store: Path) -> Path:
    folder = store / "links"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
