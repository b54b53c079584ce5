"""A state of a target back into a store.

It is made in a folder beside the one that is wanted, and gets its name when all is there and on the disk: what is
killed on the way leaves no store. Nothing is restored over what is there.

    pieces of the snapshot, then each change up to the state, into data.mdb at their places
    the meta page of the state, twice: LMDB takes the newer of two
    blocks of the local cold store, into the folder `cold`
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rlite_pubsub.backup import blocks, layout
from rlite_pubsub.backup.errors import FormatNewer, NothingKept, PieceDamaged, PieceMissing, StoreThere
from rlite_pubsub.backup.layout import ChangeName, SnapshotName
from rlite_pubsub.backup.manifest import SnapshotManifest, check_state, checked_meta
from rlite_pubsub.backup.moments import shown
from rlite_pubsub.backup.piece import Piece
from rlite_pubsub.backup.rows import RowPiece
from rlite_pubsub.backup.target import BackupTarget, Chain
from rlite_pubsub.storage import format
from rlite_pubsub.storage.checkpoints import checkpoint
from rlite_pubsub.storage.cold import cold_home
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.handle import PAGE_BYTES
from rlite_pubsub.storage.log.rows_file import RowsFile
from rlite_pubsub.storage.pages import meta
from rlite_pubsub.storage.store import Store

_AT_ONCE = 4
"""Pieces that are fetched ahead."""


class RestorePoint(NamedTuple):
    """A state that can be restored, and what leads to it."""

    snapshot: SnapshotName
    changes: tuple[ChangeName, ...]
    time_ms: int


class RestoredStore(NamedTuple):
    """The result of a restore."""

    time_ms: int
    commit: int
    changes: int
    blocks: int


def choose(chains: Iterable[Chain], at_ms: int | None) -> RestorePoint:
    """Return the last state, or the last one up to a time. Raises NothingKept."""
    best: tuple[int, Chain, int] | None = None
    first_ms: int | None = None
    for chain in chains:
        for time_ms, number in chain.states():
            first_ms = time_ms if first_ms is None else min(first_ms, time_ms)
            if (at_ms is None or time_ms <= at_ms) and (best is None or time_ms >= best[0]):
                best = time_ms, chain, number
    if best is None:
        if first_ms is None:
            raise NothingKept(layout.SNAPSHOTS, "there is no backup that can be restored")
        assert at_ms is not None
        what = f"nothing is kept of {shown(at_ms)}: the first state is of {shown(first_ms)}"
        raise NothingKept(layout.SNAPSHOTS, what)
    time_ms, chain, number = best
    for lost_ms, missing in chain.lost():
        if lost_ms > time_ms and (at_ms is None or lost_ms <= at_ms):
            raise PieceMissing(missing)
    snapshot = max((one for one in chain.snapshots if one.last <= number), key=lambda one: one.last)
    changes = tuple(each for each in chain.changes if snapshot.first < each.number <= number)
    return RestorePoint(snapshot, changes, time_ms)


def restore(target: BackupTarget, folder: Path, at_ms: int | None = None) -> RestoredStore:
    """Make a store of the last state, or of the last one up to a time. Raises BackupError (StoreThere, NothingKept,
    PieceDamaged, FormatNewer …), PlaceFailed and StoreError; and then there is no store."""
    check_free(folder)
    target.check()
    choice = choose(target.chains(), at_ms)
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.restoring"
    temporary.mkdir(mode=0o700)
    try:
        manifest = target.manifest(choice.snapshot)
        if manifest.store_format > format.VERSION:
            raise FormatNewer(choice.snapshot.path, manifest.store_format, format.VERSION)
        check_state(manifest)
        write = _write_pages if manifest.meta else _write_rows
        commit = write(target, manifest, choice, temporary / "data.mdb")
        failpoint("restore-written")
        count = _open(target, temporary)
        failpoint("restore-opened")
        _sync(temporary)
        check_free(folder)
        os.rename(temporary, folder)
        _sync(folder.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    return RestoredStore(choice.time_ms, commit, len(choice.changes), count)


def check_free(folder: Path) -> None:
    """Check that there is at most an empty folder. Raises StoreThere."""
    try:
        there = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError:
        there = [folder]
    if there:
        raise StoreThere(str(there[0]), "it exists: a backup is restored into a new or empty folder")


def _write_pages(target: BackupTarget, manifest: SnapshotManifest, choice: RestorePoint, path: Path) -> int:
    """Return the commit."""
    commit, meta_page = manifest.commit, manifest.meta
    wanted = _wanted(manifest, choice)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        follows = Succession(choice.snapshot.first)
        for (name, digest, _), piece in zip(wanted, _fetched(target, wanted), strict=True):
            if not digest:
                follows.check(name, piece)
                commit, meta_page = state_after(name, piece)
            check_places(name, piece, meta_page)
            assert isinstance(piece, Piece)
            for first, pages in piece.runs:
                _write(descriptor, pages, first * PAGE_BYTES)
        follows.check_end(choice)
        os.ftruncate(descriptor, meta.unpacked(meta_page).used_bytes)
        checkpoint.write_meta(descriptor, commit, meta_page)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return commit


def _write_rows(target: BackupTarget, manifest: SnapshotManifest, choice: RestorePoint, path: Path) -> int:
    """Return the commit."""
    commit = manifest.commit
    wanted = _wanted(manifest, choice)
    file = RowsFile(path)
    try:
        follows = Succession(choice.snapshot.first)
        for (name, digest, _), piece in zip(wanted, _fetched(target, wanted), strict=True):
            if not digest:
                follows.check(name, piece)
                commit, _ = state_after(name, piece)
            check_places(name, piece, b"")
            assert isinstance(piece, RowPiece)
            file.put(piece.rows)
        follows.check_end(choice)
        file.finish(commit)
    finally:
        file.close()
    return commit


def _wanted(manifest: SnapshotManifest, choice: RestorePoint) -> list[tuple[str, str, int]]:
    """Return the files that make a state, in this order: path, digest if it has one, and the pages at most."""
    wanted = [(layout.piece_of(piece.sha256), piece.sha256, piece.pages) for piece in manifest.pieces]
    return wanted + [(change.path, "", 0) for change in choice.changes]


def state_after(path: str, piece: Piece | RowPiece) -> tuple[int, bytes]:
    """Return the commit that a change leads to, and its meta page if it is one of pages. Raises PieceDamaged."""
    try:
        commit = int(piece.head["commit"])
        if isinstance(piece, RowPiece):
            return commit, b""
        return commit, checked_meta(bytes.fromhex(piece.head["meta"]), commit)
    except (ValueError, KeyError, TypeError, OverflowError) as failure:
        raise PieceDamaged(path, f"it does not say what it leads to ({failure})") from failure


def check_places(path: str, piece: Piece | RowPiece, meta_page: bytes) -> None:
    """Check that its pages are of the file that this meta page describes, or that it has rows if there is none. Raises
    PieceDamaged."""
    if isinstance(piece, RowPiece) == bool(meta_page):
        raise PieceDamaged(path, f"it has {'rows' if meta_page else 'pages'}, and the rest of the snapshot has not")
    if isinstance(piece, RowPiece):
        return
    last = meta.unpacked(meta_page).last_page
    for first, pages in piece.runs:
        if first + len(pages) // PAGE_BYTES > last + 1:
            raise PieceDamaged(path, f"it has page {first}, and the file has {last + 1}")


class Succession:
    """Checks that changes follow one another without a gap."""

    def __init__(self, number: int) -> None:
        """`number` is that of the change before the first."""
        self._number = number
        self._digest: str | None = None

    def check(self, path: str, piece: Piece | RowPiece) -> None:
        """The next one. Raises PieceMissing, PieceDamaged."""
        name = layout.change_name(path)
        said = piece.head
        if not isinstance(said.get("blocks"), list) or not isinstance(said.get("previous"), str):
            raise PieceDamaged(path, "it is not a change")
        if name is None or [said.get(word) for word in name._fields] != list(name):
            raise PieceDamaged(path, "its name is that of another change")
        if name.number != self._number + 1:
            raise PieceMissing(f"{path.rpartition('/')[0]}/{self._number + 1:010d}-*.pages")
        if self._digest is not None and said["previous"] != self._digest:
            raise PieceDamaged(path, "it does not follow from the change before it")
        self._number, self._digest = name.number, piece.digest

    def check_end(self, choice: RestorePoint) -> None:
        """Check that the snapshot has all of its changes. Raises PieceMissing."""
        if self._number < choice.snapshot.last:
            raise PieceMissing(f"{layout.CHANGES}/{choice.snapshot.chain}/{self._number + 1:010d}-*.pages")


def _fetched(target: BackupTarget, wanted: list[tuple[str, str, int]]) -> Iterator[Piece | RowPiece]:
    """Yield the fetched pieces, in this order."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        ahead: deque[Future[Piece | RowPiece]] = deque()
        try:
            for path, digest, most_pages in wanted:
                ahead.append(threads.submit(target.piece, path, digest, most_pages))
                if len(ahead) > _AT_ONCE:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for each in ahead:
                each.cancel()


def _open(target: BackupTarget, folder: Path) -> int:
    """Check that the store opens and has its blocks; return how many. Raises StoreError, BackupError, PlaceFailed."""
    with Store.open(folder, proves=True) as store:
        url, needed = store.data.read(blocks.needed)
        for block in needed:
            blocks.put_back(target.place, folder, block)
        if needed and url:
            store.data.write(lambda txn: cold_home.settle(txn, ""))
        store.data.sync()
        blocks.mirror(store)
    return len(needed)


def _write(descriptor: int, data: bytes, at: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, at)
        left, at = left[written:], at + written


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


