"""The place of a cold store: a folder, or a bucket.

Promises, wherever it is:
 - A file appears whole or not at all, under its name, and its writer knows that it will be there after a
   power cut. A process that dies on the way leaves nothing under that name.
 - A file that is not there is FileNotFoundError; whatever else goes wrong with the place is PlaceFailed.
 - A place can be pickled and carried across a fork: what it has open, it opens again.

places.py opens one by its address.

Files whose name begins with a dot are nobody's: they are being written, or their writer is dead (`sweep`).
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from rlite_pubsub.cold.errors import PlaceFailed

LEFTOVER_AGE_S = 3600.0
"""What is being written for longer than this is written by nobody."""
_SLICE_BYTES = 4 << 20
MOST_WHOLE_BYTES = 1 << 30
"""What is larger is read by ranges, or is not ours."""


class Found(NamedTuple):
    """A file of a place."""

    path: str
    size: int
    modified_s: float | None
    """Since 1970, by the place's clock; None where it does not tell."""


class Place(ABC):
    """All paths are relative to it, with slashes."""

    def __init__(self, url: str) -> None:
        self.url = url
        """With everything that is needed to open it, secrets too."""

    @abstractmethod
    def __reduce__(self) -> tuple[object, tuple[object]]:
        """Pickle its address and nothing else."""

    @property
    def shown(self) -> str:
        """Its address, without secrets."""
        return self.url

    @abstractmethod
    def write(self, path: str, data: bytes | memoryview) -> None:
        """Write a file, or replace it."""

    @abstractmethod
    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Return this range, or less if the file ends in it."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the size of a file."""

    @abstractmethod
    def files(self, folder: str = "") -> Iterator[Found]:
        """Return all files in a folder and below it, sorted; none, where there is no such folder."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Remove a file, if it is there."""

    @abstractmethod
    def sweep(self, now_s: float | None = None) -> int:
        """Remove what dead writers have left; how many files that were."""

    def slices(self, path: str, stop: int | None = None) -> Iterator[bytes]:
        """Yield a file piece by piece, as a whole or up to `stop`."""
        at = 0
        while True:
            wanted = _SLICE_BYTES if stop is None else min(_SLICE_BYTES, stop - at)
            piece = self.read(path, at, wanted)
            yield piece
            at += len(piece)
            if len(piece) < wanted or at == stop:
                return


def checked(path: str) -> str:
    """Return a path that stays in its place: what is read in a manifest may be anybody's."""
    parts = path.split("/")
    if not path or PurePosixPath(path).is_absolute() or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise PlaceFailed(path, "not a path within a cold store")
    return path


def check_whole(path: str, size: int) -> int:
    """Return the size of a file that is to be read as a whole, if that can be. Raises PlaceFailed."""
    if size > MOST_WHOLE_BYTES:
        raise PlaceFailed(path, f"it has {size} bytes: none of ours has more than {MOST_WHOLE_BYTES}")
    return size


def is_leftover(name: str, modified_s: float, now_s: float | None) -> bool:
    """Return whether a file was left behind by a dead writer."""
    now_s = time.time() if now_s is None else now_s
    return name.startswith(".") and name.endswith(".part") and now_s - modified_s >= LEFTOVER_AGE_S
