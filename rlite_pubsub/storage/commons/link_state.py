"""The report of the process that runs a store's links, for all who have the store open, and the lock that says which
process that is.

    links/state.json    in the store's folder; replaced as a whole once a second
    links/lock          held with flock by the process that has the links
    links/server        held with flock by the server that has started it
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from rlite_pubsub import permissions

_STATE: Final = "state.json"
OLD_MS: Final = 5000
"""The age beyond which a state no longer counts."""


@dataclass
class LinkState:
    """The state of one link, without its password."""

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
    """Entries that are still to be transferred."""
    lag_ms: int = 0
    """How long the oldest of them has been waiting."""
    gaps: int = 0
    """Entries that were trimmed before they could be transferred."""
    topics: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class LinksState:
    """The state of all links."""

    at_ms: int = 0
    guests: list[str] = field(default_factory=list)
    """The links of other stores that lead here, by their names there."""
    repeated: int = 0
    """Messages that came again, or were overtaken, and were not passed on."""
    links: list[LinkState] = field(default_factory=list)


class Lock:
    """A place that only one process has at a time."""

    def __init__(self, store: str | os.PathLike[str], name: str = "lock") -> None:
        """Open the lock file. Raises OSError."""
        folder = _folder(Path(store))
        self._descriptor = permissions.opened(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW)

    def take(self) -> bool:
        """Take the lock; return False if another process has it."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def write(store: Path, state: LinksState) -> None:
    """Write the state. Raises OSError."""
    path = _folder(store) / _STATE
    temporary = path.with_name(f".{_STATE}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(permissions.opened(temporary, flags), "w") as file:
        json.dump(asdict(state), file)
    temporary.rename(path)


def read(store: Path) -> LinksState | None:
    """Read the state; None if there were never links, or the file cannot be read."""
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
