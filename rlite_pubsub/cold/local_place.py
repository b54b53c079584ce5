"""A cold store in a folder.

Order of a write: temporary file -> fsync -> read it again -> rename -> fsync the folder. The folder that a new folder
is in is fsynced before anything is in the new one.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlite_pubsub import permissions
from rlite_pubsub.cold.errors import PlaceFailed
from rlite_pubsub.cold.place import Found, Place, check_whole, checked, is_leftover
from rlite_pubsub.storage.failpoint import failpoint

_COMPARED_BYTES = 4 << 20


class LocalPlace(Place):
    """A folder; its URL is the folder's absolute path."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder))
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[object]]:
        return LocalPlace, (self.folder,)

    def write(self, path: str, data: bytes | memoryview) -> None:
        target = self.folder / checked(path)
        temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.part"
        with _failing(path):
            _make_folder(target.parent)
            try:
                _write_synced(temporary, memoryview(data).cast("B"))
                failpoint("cold-file-synced")
                _prove(temporary, memoryview(data).cast("B"), path)
                failpoint("cold-file-verified")
                os.rename(temporary, target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            failpoint("cold-file-renamed")
            _sync_folder(target.parent)

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes:
        with _failing(path):
            descriptor = permissions.opened_to_read(self.folder / checked(path))
            try:
                if length is None:
                    length = max(0, check_whole(path, os.fstat(descriptor).st_size) - start)
                pieces = []
                while length > 0 and (piece := os.pread(descriptor, length, start)):
                    pieces.append(piece)
                    start += len(piece)
                    length -= len(piece)
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
            finally:
                os.close(descriptor)

    def size(self, path: str) -> int:
        with _failing(path):
            return (self.folder / checked(path)).stat().st_size

    def files(self, folder: str = "") -> Iterator[Found]:
        root = self.folder / checked(folder) if folder else self.folder
        with _failing(folder or self.url):
            found = [Found(str(path.relative_to(self.folder)), size, at_s) for path, size, at_s in _files(root)]
        yield from sorted(found)

    def delete(self, path: str) -> None:
        target = self.folder / checked(path)
        with _failing(path):
            try:
                target.unlink()
            except FileNotFoundError:
                return
            _sync_folder(target.parent)

    def sweep(self, now_s: float | None = None) -> int:
        count = 0
        with _failing(self.url):
            for path in list(self.folder.rglob(".*.part")):
                try:
                    if is_leftover(path.name, path.stat().st_mtime, now_s):
                        path.unlink()
                        count += 1
                except FileNotFoundError:
                    continue  # its writer has given it its name, or removed it
        return count


@contextmanager
def _failing(path: str) -> Iterator[None]:
    """The OS's refusals, in our words."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as failure:
        raise PlaceFailed(path, failure.strerror or str(failure)) from failure


def _files(root: Path) -> Iterator[tuple[Path, int, float]]:
    """All files that have their names, how large they are, and when they were written. What others remove meanwhile may
    be among them or not."""
    for folder, _, names in os.walk(root, onerror=_unless_gone):
        for name in names:
            path = Path(folder, name)
            if not name.startswith("."):
                try:
                    about = path.stat()
                    yield path, about.st_size, about.st_mtime
                except FileNotFoundError:
                    continue


def _unless_gone(failure: OSError) -> None:
    if not isinstance(failure, FileNotFoundError):
        raise failure


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    permissions.make_folder(folder)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_synced(path: Path, data: memoryview) -> None:
    descriptor = permissions.opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        failpoint("cold-file-begun")
        while data:
            data = data[os.write(descriptor, data) :]
        failpoint("cold-file-written")
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prove(path: Path, data: memoryview, name: str) -> None:
    """Check that what can be read is what was written."""
    with path.open("rb", buffering=0) as file:
        at = 0
        while piece := file.read(_COMPARED_BYTES):
            if data[at : at + len(piece)] != piece:
                raise PlaceFailed(name, "what can be read is not what was written")
            at += len(piece)
    if at != len(data):
        raise PlaceFailed(name, f"{at} bytes can be read, and {len(data)} were written")
