"""One open store: its folder and its two environments, once per process.

LMDB must not be opened twice in a process, so opening a folder that is open already returns the same Store; the last
`close` closes it. A forked child has no open store: it opens its own.

live.mdb holds what only living processes need. It is wiped after a restart of the machine, or when it is damaged or of
an older format, but never while another process has the store open. data.mdb is never wiped; one of an older format is
upgraded by a process that finds itself alone with it.
"""

from __future__ import annotations

import logging
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from rlite_pubsub.storage import format, proving
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.checkpoints import checkpoint
from rlite_pubsub.storage.disk_use import DiskUse
from rlite_pubsub.storage.environment import Durability, Environment
from rlite_pubsub.storage.errors import StoreDamaged, StoreFormatOlder, StoreRemoved, StoreUnwritable
from rlite_pubsub.storage.folder import Folder
from rlite_pubsub.storage.incidents import Incidents
from rlite_pubsub.storage.journal.recovery import recover
from rlite_pubsub.storage.lmdb_environment import LmdbEnvironment
from rlite_pubsub.storage.locks.writer_lock import PATIENCE_S, WriterLock, WriterLocks
from rlite_pubsub.storage.names.version import RoutesHint
from rlite_pubsub.storage.upgrade import upgrade

log = logging.getLogger("rlite_pubsub")

UNLIMITED_QUOTA_BYTES = 1 << 40
"""Of each environment. Without a quota the disk is the limit; the map needs some number."""

KEPT_LIVE_BYTES = 64 << 20
"""A process that finds itself alone with a larger live.mdb gives its space back: all that is in it belonged to dead
processes."""

_stores: dict[tuple[int, int], Store] = {}
_opening = threading.Lock()


class Store:
    """An open store, made by `Store.open`. Each `open` is paired with one `close`."""

    def __init__(
        self, folder: Folder, live: Environment, data: Environment, routes: RoutesHint, locks: WriterLocks
    ) -> None:
        self.folder = folder.path
        self.subscribers_folder = folder.subscribers
        self.live = live
        self.data = data
        self.routes = routes
        self._locks = locks
        self._folder = folder
        self._users = 1
        self.is_lost = False  # found out by `is_in_place`
        self.incidents = Incidents(live)
        self.disk_use = DiskUse(folder.path)
        self.reaped = 0  # dead subscribers that this process has cleaned up after

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        quota_bytes: int = UNLIMITED_QUOTA_BYTES,
        durability: Durability = "everysec",
        for_group: bool = False,
        proves: bool = False,
    ) -> Store:
        """Open the store in this folder, creating it if there is none. The first opener's options count. With
        `for_group` the folder's group may open it, too. With `proves`, and if the last server was ended by a page that
        LMDB could not read, all of it is read by another process first (proving.py).

        Raises a StoreError that says what is wrong with the folder or its files.
        """
        with _opening:
            opened = Folder(Path(os.path.abspath(folder)), for_group=for_group)
            known = _stores.get(opened.identity)
            if known is not None:
                opened.close()
                known._users += 1
                return known
            try:
                store = cls(opened, *_open_environments(opened, quota_bytes, durability, proves=proves))
            except BaseException:
                opened.close()
                raise
            _stores[opened.identity] = store
            return store

    def close(self) -> None:
        with _opening:
            if _stores.get(self._folder.identity) is not self:
                return  # it is closed already, or open only in the process that this one was forked from
            self._users -= 1
            if self._users == 0:
                del _stores[self._folder.identity]
                self.live.close()
                self.data.close()
                self._locks.close()
                self.routes.close()
                self._folder.close()

    def is_in_place(self) -> bool:
        """Return whether it is still what others open at its path. If not, every use raises StoreRemoved from now
        on."""
        if self.is_lost:
            return False
        if self._folder.is_in_place():
            return True
        self.is_lost = True
        log.error("%s", StoreRemoved(self.folder))
        self.live.condemn()
        self.data.condemn()
        return False

    def look_for_others(self) -> None:
        """Find out whether the other processes that had it open have gone: this one needs no locks then, and its turns
        may share commits (journal/shared_commit.py). Raises StoreError."""
        if self._locks.is_alone or not self.is_open:
            return
        try:
            with self._folder.looking_for_others() as is_alone:
                if is_alone:
                    self._locks.be_alone()
                    self.live.be_alone()
                    self.data.be_alone()
        except OSError as error:
            raise StoreUnwritable(self.folder, os.strerror(error.errno or 0)) from error

    def wait_for_writers(self, patience_s: float = PATIENCE_S) -> None:
        """Let writers of this process wait this long, at most, while another process writes."""
        for environment in (self.live, self.data):
            if environment.writer is not None:
                environment.writer.wait_for_holder(patience_s)

    def wait_for_no_writer(self) -> None:
        """Let writers of this process not wait, because others wait for them: they get StoreHeld at once."""
        for environment in (self.live, self.data):
            if environment.writer is not None:
                environment.writer.wait_for_nobody()

    def wait_for_no_disk(self) -> None:
        """Let writers not wait for a disk, either: another thread makes safe what must be safe before they write."""
        for environment in (self.live, self.data):
            environment.safety.wait_for_no_disk()

    @property
    def is_open(self) -> bool:
        """False once it is closed, and in a forked child."""
        return _stores.get(self._folder.identity) is self

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _open_environments(
    folder: Folder, quota_bytes: int, durability: Durability, *, proves: bool
) -> tuple[Environment, Environment, RoutesHint, WriterLocks]:
    with folder.opening() as is_alone, ExitStack() as opened:
        locks = WriterLocks(folder.path, is_alone=is_alone)
        opened.callback(locks.close)
        crash = proving.noted_crash(folder.path) if is_alone else ""
        if crash:
            log.warning("%s: %r has ended the last server: the store is proved before it is opened", folder.path, crash)
            proves = True
        path = folder.path / "data.mdb"
        data = _open_data(path, locks, quota_bytes, durability, is_alone=is_alone, proves=proves)
        opened.callback(data.close)
        if is_alone:
            _forget_live_of_other_boots(folder)
        if proves:
            _prove_live(folder.path / "live.mdb", is_alone=is_alone, is_suspect=bool(crash))
        live = _open_live(folder.path / "live.mdb", locks, quota_bytes, is_alone=is_alone)
        opened.callback(live.close)
        try:
            routes = RoutesHint(folder.path)
        except OSError as error:
            raise StoreUnwritable(folder.path, os.strerror(error.errno or 0)) from error
        if is_alone:
            routes.forget()
        if crash:
            proving.forget_crash(folder.path)
        opened.pop_all()
        return live, data, routes, locks


def _open_data(
    path: Path, locks: WriterLocks, quota_bytes: int, durability: Durability, *, is_alone: bool, proves: bool
) -> Environment:
    if os.environ.get("RLITE_STORE_ENGINE") == "log":
        if is_alone:
            _let_log_begin(path, locks, quota_bytes, durability, proves=proves)
        return _open_log(path, locks, quota_bytes, durability, is_alone=is_alone, proves=proves)
    return _open_pages(path, locks, quota_bytes, durability, is_alone=is_alone, proves=proves)


def _open_pages(
    path: Path, locks: WriterLocks, quota_bytes: int, durability: Durability, *, is_alone: bool, proves: bool
) -> LmdbEnvironment:
    was_ours = checkpoint.was_saved(path)
    given_up = checkpoint.restore(path) if is_alone else 0
    if given_up:
        log.warning("%s: the last %d commits before the machine went down were not on the disk", path, given_up)
    if proves and _has_contents(path) and (fault := proving.fault_in(path, is_shared=not is_alone)):
        raise StoreDamaged(path, fault)
    environment = LmdbEnvironment(
        path,
        durability,
        quota_bytes=quota_bytes,
        first_map_bytes=quota_bytes,
        checkpointed=True,
        writer=WriterLock(locks, path),
    )
    try:
        missing_bytes = _missing_bytes(environment) if is_alone else 0
        if missing_bytes:
            os.truncate(path, environment.used_bytes())
            log.warning("%s is %d bytes shorter than it says it is: they read as zeros", path, missing_bytes)
        recover(environment)
        if is_alone:
            upgrade(environment)
        format.check_or_mark(environment, was_ours=was_ours)
        if environment.safety.is_behind:
            environment.sync()
            environment.safety.let_go()  # a process that opens a store may never write to it again
    except BaseException:
        environment.close()
        raise
    return environment


def _let_log_begin(
    path: Path, locks: WriterLocks, quota_bytes: int, durability: Durability, *, proves: bool
) -> None:
    """Make a store that has no log yet one that a log can begin with: all that its last processes have left beside
    data.mdb is brought into it, once and for all, before there is a log."""
    left = [path.with_name(f"data.{ending}") for ending in ("safe", "delta", "journal")]
    if not _has_contents(path) or next(path.parent.glob("data.log.*"), None) is not None:
        return
    if not any(map(Path.exists, left)):
        return
    before = _open_pages(path, locks, quota_bytes, durability, is_alone=True, proves=proves)
    try:
        before.sync()
    finally:
        before.close()
    for file in left:
        file.unlink(missing_ok=True)


def _open_log(
    path: Path, locks: WriterLocks, quota_bytes: int, durability: Durability, *, is_alone: bool, proves: bool
) -> Environment:
    """Open a store whose truth is the log: for tests, until it is complete."""
    from rlite_pubsub.storage.log.environment import LogEnvironment
    from rlite_pubsub.storage.log.home import newest
    from rlite_pubsub.storage.log.writer import LogWriterLock

    home = newest(path.parent)
    if proves and _has_contents(home) and (fault := proving.fault_in(home, is_shared=not is_alone)):
        raise StoreDamaged(home, fault)

    window_bytes = int(os.environ.get("RLITE_STORE_WINDOW_BYTES", 16 << 20))
    writer = LogWriterLock(locks, is_alone=is_alone)
    environment = LogEnvironment(
        path, durability, quota_bytes=quota_bytes, writer=writer, is_alone=is_alone, window_bytes=window_bytes
    )
    try:
        if is_alone:
            upgrade(environment)
        format.check_or_mark(environment)
    except BaseException:
        environment.close()
        raise
    return environment


def _forget_live_of_other_boots(folder: Folder) -> None:
    """Remove a live.mdb of an earlier boot: a power cut may leave anything of a file that is never synced, so LMDB must
    not even look at it."""
    boot = boot_id()
    try:
        if folder.live_is_of(boot):
            return
        _remove_live(folder.path / "live.mdb")
    except OSError as error:
        raise StoreUnwritable(folder.path, os.strerror(error.errno or 0)) from error
    try:
        folder.note_boot(boot)
    except OSError as error:
        log.warning(
            "Can't note that live.mdb is of this start of the machine (%s): it will be recreated next time", error
        )


def _prove_live(path: Path, *, is_alone: bool, is_suspect: bool) -> None:
    """Remove a live.mdb that can't be read, or may have ended a server, if nobody has it open: nobody needs it then.
    Raises StoreDamaged if others have it open."""
    if not _has_contents(path):
        return
    fault = "it may have ended a server" if is_suspect and is_alone else proving.fault_in(path, is_shared=not is_alone)
    if not fault:
        return
    if not is_alone:
        raise StoreDamaged(path, fault)
    log.warning("%s: %s: it is made anew, as nothing that lives needs it", path, fault)
    try:
        _remove_live(path)
    except OSError as error:
        raise StoreUnwritable(path.parent, os.strerror(error.errno or 0)) from error


def _has_contents(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def _open_live(path: Path, locks: WriterLocks, quota_bytes: int, *, is_alone: bool) -> LmdbEnvironment:
    try:
        environment = _checked_live(path, locks, quota_bytes, is_alone=is_alone)
    except (StoreDamaged, StoreFormatOlder) as error:
        if not is_alone:
            raise
        if isinstance(error, StoreDamaged):
            log.warning("%s; it is wiped, as nothing that lives needs it", error)
        return _wiped_live(path, locks, quota_bytes)
    if is_alone and (not format.is_of_this_boot(environment) or environment.used_bytes() > KEPT_LIVE_BYTES):
        environment.close()
        return _wiped_live(path, locks, quota_bytes)
    return environment


def _checked_live(path: Path, locks: WriterLocks, quota_bytes: int, *, is_alone: bool) -> LmdbEnvironment:
    environment = LmdbEnvironment(path, "no", quota_bytes=quota_bytes, writer=WriterLock(locks, path))
    try:
        if is_alone and _missing_bytes(environment):
            raise StoreDamaged(path, "its end is missing")
        format.check_or_mark(environment, boot_id())
    except BaseException:
        environment.close()
        raise
    return environment


def _missing_bytes(environment: LmdbEnvironment) -> int:
    """Return by how many bytes the file is too short: reading there would be a SIGBUS. (Free pages at its end may never
    have been written, so it need not be damage.)"""
    return max(0, environment.used_bytes() - environment.path.stat().st_size)


def _wiped_live(path: Path, locks: WriterLocks, quota_bytes: int) -> LmdbEnvironment:
    _remove_live(path)
    return _checked_live(path, locks, quota_bytes, is_alone=True)


def _remove_live(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.with_name(path.name + "-lock").unlink(missing_ok=True)


def _forget_in_child() -> None:
    global _opening
    _stores.clear()
    _opening = threading.Lock()


os.register_at_fork(after_in_child=_forget_in_child)
