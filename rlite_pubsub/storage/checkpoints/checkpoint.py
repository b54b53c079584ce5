"""What a power cut leaves of data.mdb: its last checkpoint, whole.

LMDB is opened without syncing, so that a commit costs no disk. A commit's new root may then reach the disk before the
pages it points to; and two commits later the pages that the old root needs may be written over. So a checkpoint is

    PIN     a read transaction on the latest commit N: LMDB overwrites nothing that N needs as long as it is open
    SYNC    the file
    SAVE    the meta page of N in `data.safe`, and sync that; only then is N safe
    UNPIN   the checkpoint before

If little was changed since the checkpoint before, SYNC and SAVE are one synced write elsewhere (deltas.py), so that
pages that no checkpoint needs are reused at once, and need not reach the disk.

Law: a writer holds a pin no newer than the last checkpoint that is saved, and has it before its first write. As LMDB
keeps everything back to the oldest reader, a process's own pin protects the last checkpoint from its own writes,
whichever process took it. So no process relies on another's pin, and each may

    LET GO  of its pin whenever it is not writing: once all that it committed is safe and it has been idle for a moment.
            Until it writes again the others protect the checkpoint from their writes, and where nobody writes, nothing
            is overwritten;
    HOLD    one again before its next write. If the last commit is the one that is saved, that is a read transaction and
            a look at what is saved. If not (another process is writing, or has died before its commits were safe),
            the checkpoint that is saved cannot be pinned any more, and a new one is taken: PIN, SYNC, SAVE.

Law 10: a pin lives no longer than the write that needs it. The pin of a sleeping process would keep LMDB from reusing
any page freed since, by any process, and the file would grow with each commit. A dead process's pin is no longer
needed, for the dead do not write: the process that syncs clears it from LMDB's table of readers.

The first process that opens the store after a reboot goes back to the checkpoint: what was committed later was never
reported as safe. While the machine runs this is not needed: the kernel has everything that was written, whichever
process was killed.

    data.safe   two slots of 512 bytes, the newer counts: magic, crc32 u32, transaction u64, boot id, meta page
"""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from typing import Final, TypeAlias
from zlib import crc32

import lmdb

from rlite_pubsub import permissions
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.checkpoints import deltas
from rlite_pubsub.storage.checkpoints.deltas import Checkpointed, delta_path
from rlite_pubsub.storage.errors import StoreDamaged
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.locks import lock_file
from rlite_pubsub.storage.locks.writer_lock import PATIENCE_S
from rlite_pubsub.storage.pages import meta as meta_page
from rlite_pubsub.storage.pages.tree import Read, Unknown, changed_pages
from rlite_pubsub.storage.system import SYNCED_WRITE, sync

log: Final = logging.getLogger("rlite_pubsub")

SLOT_BYTES: Final = 512
_MAGIC: Final = b"rlitesafe1"
_BOOT_BYTES: Final = 36
_SLOT: Final = Struct(f"<10sIQ{_BOOT_BYTES}s")
_PAGE_NUMBER: Final = Struct("<Q")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_UNUSED_BYTES: Final = 2 * _PAGE_BYTES
"""Two meta pages and nothing else."""
_TO_SYNC: Final = os.O_RDWR | os.O_CREAT | SYNCED_WRITE
"""What is written is on the disk."""
_ATTEMPTS: Final = 100
_Slot: TypeAlias = tuple[int, bytes, bytes]


class _Files:
    """The names of an environment's files, made once."""

    __slots__ = ("data", "delta", "path", "safe")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = str(path)
        self.safe = str(safe_path(path))
        self.delta = str(delta_path(path))


class Pinned:
    """A commit that is to be made safe: the pages it needs are not overwritten."""

    __slots__ = ("ended", "meta", "number", "pin")

    def __init__(self, pin: lmdb.Transaction[bytes], number: int, meta: bytes, ended: int) -> None:
        self.pin = pin
        self.number = number
        self.meta = meta
        self.ended = ended  # how many writes of this process it surely has


class Checkpoint:
    """The checkpoints that one process takes of its data.mdb. Safe to share between threads."""

    def __init__(
        self,
        path: Path,
        begin: Callable[[], lmdb.Transaction[bytes]],
        sync: Callable[[], None],
        *,
        most_pages: int = deltas.MOST_PAGES,
        delta_bytes: int = deltas.LIMIT_BYTES,
    ) -> None:
        """`begin` opens a read transaction, `sync` brings the environment's file to the disk. A delta has so many pages
        at the most, and all deltas together so many bytes."""
        self._path = path
        self._files = _Files(path)
        self._begin = begin
        self._sync = sync
        self._most_pages = most_pages
        self._delta_bytes = delta_bytes
        self._boot = boot_id()
        self.pin: lmdb.Transaction[bytes] | None = None
        self._pin_number = -1  # of a pin that protects what is saved
        self._begun: set[Pinned] = set()
        self._lock = threading.Lock()
        self._last: Checkpointed | None = None  # of this boot, as far as we have followed
        self._much = 0  # this many checkpoints are taken as large ones
        self.safe = -1  # the last transaction that survives a power cut, as far as we know
        self.writers = 0  # threads that write, or are about to: each adds itself, and then sees whether there is a pin
        self.ended = 0  # how many writes have ended, committed or not
        self._safe_ended = 0  # how many of them are safe

    def saved(self) -> int:
        """Return the last transaction that survives a power cut, whichever process synced it; -1 if there is none."""
        with self._lock:
            return self._saved()

    def _saved(self) -> int:
        last = self._last = _last_saved(self._files, self._boot, self._last)
        return -1 if last is None else last.number

    @property
    def is_behind(self) -> bool:
        """True if this process may have committed something that is not safe."""
        return self.ended != self._safe_ended

    @property
    def unsafe(self) -> int:
        """How many writes of this process have ended since the last one that is safe."""
        return self.ended - self._safe_ended

    def hold(self) -> bool:
        """Pin the last commit if it is safe already, which takes no disk. Returns whether this process may write
        now."""
        with self._lock:
            if self.pin is None:
                pin = self._begin()
                number = pin.id()
                if number == self._saved():
                    self.pin, self._pin_number = pin, number
                    self.safe = max(self.safe, number)
                else:
                    pin.abort()
            return self.pin is not None

    def let_go(self) -> bool:
        """Let go of the pin, if nobody writes and all writes are safe. Returns whether it did."""
        with self._lock:
            pin = self.pin
            if pin is None:
                return True
            if self.writers or self.is_behind:
                return False
            self.pin = None
            if self.writers or self.is_behind:  # a process that has just begun may have seen it
                self.pin = pin
                return False
            self._pin_number = -1
            pin.abort()
            return True

    def take(self, patience_s: float = PATIENCE_S) -> int:
        """Make everything committed safe; return the last transaction that is. Raises lmdb.Error, OSError and, if
        another process keeps `data.safe` for this long, StoreHeld."""
        return self.finish(self.begin(), patience_s)

    def begin(self) -> Pinned:
        """Pin what is committed: the part that needs no disk, and must not wait for another thread to run."""
        pinned = self.pin_last()
        self._begun.add(pinned)
        return pinned

    def finish(self, pinned: Pinned, patience_s: float = PATIENCE_S) -> int:
        """Bring a pinned commit to the disk, in any thread; otherwise like `take`."""
        if pinned not in self._begun:  # it has been released meanwhile
            pinned = self.begin()
        try:
            is_saved = pinned.number <= self.safe
            if not is_saved:
                failpoint("checkpoint-pinned")
                with _SafeFile(self._files, patience_s=patience_s):
                    pass  # a loop may wait for our lock: inside it nobody waits long for another process
                with self._lock:
                    is_saved = self._save_delta(pinned)
            if not is_saved:
                self._sync()
                failpoint("checkpoint-synced")
            with self._lock:
                if not is_saved and pinned.number > self.safe:
                    self._save(pinned.number, pinned.meta)
                failpoint("checkpoint-saved")
                self._keep(pinned)
        except BaseException:
            with self._lock:
                pinned.pin.abort()
            raise
        finally:
            self._begun.discard(pinned)
        return pinned.number

    def take_at_once(self) -> bool:
        """Like `take`, if that is one short write and needs no waiting. Returns False, having done nothing, if not:
        then `take` does it, or says why it cannot be done. Raises lmdb.Error."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self.pin is None or self._much:
                return False
            pinned = self.pin_last()
            is_saved = False
            try:
                is_saved = self._save_delta(pinned, waits=False)
            finally:
                if is_saved:
                    self._keep(pinned)
                else:
                    pinned.pin.abort()
            return is_saved
        except OSError as trouble:
            log.debug("%s: not at once: %s", self._path, trouble)
            return False
        finally:
            self._lock.release()

    def _keep(self, pinned: Pinned) -> None:
        """Note that a commit is safe, and keep the latest of the pins that protect it."""
        self._safe_ended = max(self._safe_ended, pinned.ended)
        before, unneeded = self.pin, pinned.pin
        if pinned.number >= self._pin_number:
            self.pin, self._pin_number = pinned.pin, pinned.number
            self.safe = max(self.safe, pinned.number)
            if before is None:
                return
            unneeded = before
        unneeded.abort()

    def release(self) -> None:
        """Release the pins: this process no longer writes. Call it when nobody is about to `finish`."""
        with self._lock:
            begun, self._begun = self._begun, set()
            for pinned in begun:
                pinned.pin.abort()
            pin, self.pin, self._pin_number = self.pin, None, -1
            if pin is not None:
                pin.abort()

    def abandon(self) -> list[lmdb.Transaction[bytes]]:
        """Forget the pins in a forked child, for they belong to the parent. Returns what must never be closed here."""
        pins = [pinned.pin for pinned in self._begun]
        if self.pin is not None:
            pins.append(self.pin)
        self.pin, self._pin_number, self._begun = None, -1, set()
        self._lock = threading.Lock()
        return pins

    def pin_last(self) -> Pinned:
        """Open a read transaction on the last commit, with its number and its meta page, which the next commit but one
        overwrites. The caller aborts it. Raises lmdb.Error, OSError, StoreDamaged."""
        ended = self.ended  # before the snapshot, which has all of these
        for _ in range(_ATTEMPTS):
            pin = self._begin()
            number = pin.id()
            with _Opened(self._files.data, os.O_RDONLY) as descriptor:
                meta, again = (os.pread(descriptor, meta_page.BYTES, meta_page.place(number)) for _ in range(2))
            if meta == again and meta_page.transaction_of(meta) == number:
                return Pinned(pin, number, meta, ended)
            pin.abort()
        raise StoreDamaged(self._path, "the meta page of its last transaction can't be read")

    def _save_delta(self, pinned: Pinned, *, waits: bool = True) -> bool:
        """Save a delta instead of syncing the environment's file, if few pages were changed. Returns False if the file
        must be synced."""
        if self.pin is None:
            return False
        if self._much:
            self._much -= 1
            return False
        files = self._files
        with _SafeFile(files, waits=waits) as safe, _Opened(files.delta, _TO_SYNC) as descriptor:
            if safe < 0:
                return False
            last = self._last = _followed(safe, descriptor, self._boot, self._last)
            if last is None or last.number < self._pin_number:
                return False  # our pin does not protect what is saved
            if last.number >= pinned.number:
                return True  # another process has saved a later one, which protects ours
            try:
                with _Opened(self._files.data, os.O_RDONLY) as data:
                    changed = changed_pages(_reader(data), last.meta, pinned.meta, _PAGE_BYTES, self._most_pages)
                if changed is None:
                    self._much = deltas.MUCH_AGAIN
                    return False
                number, meta = pinned.number, pinned.meta
                return deltas.append(descriptor, last, number, meta, changed, _PAGE_BYTES, self._delta_bytes)
            except (Unknown, OSError) as trouble:
                log.debug("%s: all of it is synced instead: %s", self._path, trouble)
                return False

    def _save(self, number: int, meta: bytes) -> None:
        with _SafeFile(self._files) as descriptor:
            with _Opened(self._files.delta, _TO_SYNC) as delta:
                last = self._last = _followed(descriptor, delta, self._boot, self._last)
            if last is not None and last.number >= number:
                return  # another process has saved a later one, which protects ours
            slots = _read_slots(descriptor)
            numbers = [slot[0] if slot is not None and slot[1] == self._boot else -1 for slot in slots]
            place = numbers.index(min(numbers))
            checksum = crc32(_SLOT.pack(_MAGIC, 0, number, self._boot) + meta)
            packed = _SLOT.pack(_MAGIC, checksum, number, self._boot) + meta
            os.pwrite(descriptor, packed.ljust(SLOT_BYTES, b"\0"), place * SLOT_BYTES)  # and sync
            if max(numbers) < 0:
                _sync_names(self._path.parent)


def saved(path: Path, boot: bytes) -> int:
    """Return the last transaction that survives a power cut, synced by any process since this start of the machine; -1
    if there is none."""
    last = _last_saved(_Files(path), boot, None)
    return -1 if last is None else last.number


def _last_saved(files: _Files, boot: bytes, known: Checkpointed | None) -> Checkpointed | None:
    """Return the last saved checkpoint, without the lock of `data.safe`: one that is just being saved does not count
    yet."""
    try:
        with _Opened(files.safe, os.O_RDONLY) as safe, _Opened(files.delta, _TO_SYNC) as delta:
            return _followed(safe, delta, boot, known)
    except FileNotFoundError:
        return None


def _followed(safe: int, delta: int, boot: bytes, known: Checkpointed | None) -> Checkpointed | None:
    """Return the last checkpoint that any process has saved since this start of the machine, going on from a known
    one."""
    slots = [slot for slot in _read_slots(safe) if slot is not None and slot[1] == boot]
    if not slots:
        return None
    number, _, meta = max(slots)
    last = known if known is not None and known.is_from(boot, number, meta) else Checkpointed(boot, number, meta)
    while deltas.follow(delta, last, _PAGE_BYTES) is not None:
        pass
    return last


def restore(path: Path) -> int:
    """Go back to the checkpoint, if the machine was restarted since; return how many transactions were given up. Called
    by a process that has the store to itself, before LMDB opens the file.

    If no checkpoint was ever taken, nothing was ever written: such a file may not even be whole, and is recreated.
    """
    if not path.exists():
        return 0
    if not was_saved(path):
        if path.stat().st_size <= _UNUSED_BYTES:
            path.unlink()
        return 0
    boot = boot_id()
    with _SafeFile(_Files(path)) as descriptor:
        slots = [slot for slot in _read_slots(descriptor) if slot is not None]
        if not slots or not boot:
            return 0
        if any(slot[1] == boot for slot in slots):
            return 0
        number, saved_in, meta = max(slots)
        given_up = _go_back(path, Checkpointed(saved_in, number, meta))
        os.ftruncate(descriptor, 0)  # it belongs to another boot
        sync(descriptor)
        return given_up


def was_saved(path: Path) -> bool:
    """Return whether there is a checkpoint of this environment, from any start of the machine."""
    try:
        with _Opened(str(safe_path(path)), os.O_RDONLY) as descriptor:
            return any(_read_slots(descriptor))
    except FileNotFoundError:
        return False


def _go_back(path: Path, last: Checkpointed) -> int:
    """Go back to this checkpoint, and on to the last delta after it. If this is interrupted, it is done again."""
    with _Opened(str(path), os.O_RDWR) as descriptor:
        metas = [os.pread(descriptor, meta_page.BYTES, meta_page.place(turn)) for turn in (0, 1)]
        transactions = list(map(meta_page.transaction_of, metas))
        found = max(transactions)
        has_deltas = False
        with _Opened(str(delta_path(path)), os.O_RDWR | os.O_CREAT) as delta:
            while (runs := deltas.follow(delta, last, _PAGE_BYTES)) is not None:
                has_deltas = True
                for first, pages in runs:
                    os.pwrite(descriptor, pages, first * _PAGE_BYTES)
        if found == last.number and min(transactions) >= 0 and not has_deltas:
            return 0
        write_meta(descriptor, last.number, last.meta)
        os.fsync(descriptor)
        return max(found - last.number, 0)


def write_meta(descriptor: int, number: int, meta: bytes) -> None:
    """Make this meta page's commit the last of the file."""
    for transaction in (number - 1, number):
        page = bytearray(meta)
        page[: _PAGE_NUMBER.size] = _PAGE_NUMBER.pack(transaction & 1)
        page[meta_page.TRANSACTION_AT :] = _PAGE_NUMBER.pack(max(transaction, 0))  # a new file has two of 0
        os.pwrite(descriptor, page, meta_page.place(transaction))


def safe_path(path: Path) -> Path:
    """Return the path of the environment's checkpoints."""
    return path.with_suffix(".safe")


def _sync_names(folder: Path) -> None:
    """Sync the names of a new store's files, and of the folders that contain it: any of them may be new. Raises
    OSError."""
    device = os.stat(folder).st_dev
    for each in (folder, *folder.parents):
        if os.stat(each).st_dev != device:
            return  # beyond a mount point nothing is new
        try:
            with _Opened(str(each), os.O_RDONLY | os.O_DIRECTORY) as descriptor:
                os.fsync(descriptor)
        except PermissionError:
            if each == folder:
                raise  # the others belong to another user, and are older


class _Opened:
    """An open file, closed at the end."""

    __slots__ = ("descriptor",)

    def __init__(self, name: str, flags: int) -> None:
        self.descriptor = permissions.opened(name, flags)

    def __enter__(self) -> int:
        return self.descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


class _SafeFile(_Opened):
    """`data.safe`, locked; -1 if another process has the lock and may not be waited for. Raises StoreHeld if that
    process keeps the lock for longer than the patience allows: it may be stopped (law 9)."""

    __slots__ = ("_is_locked",)

    def __init__(self, files: _Files, *, waits: bool = True, patience_s: float = PATIENCE_S) -> None:
        super().__init__(files.safe, _TO_SYNC)
        self._is_locked = True
        try:
            if waits:
                lock_file.take(self.descriptor, Path(files.safe), patience_s)
            else:
                fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BaseException as failure:
            self._is_locked = False
            if waits or not isinstance(failure, BlockingIOError):
                os.close(self.descriptor)
                raise

    def __enter__(self) -> int:
        return self.descriptor if self._is_locked else -1


def _reader(descriptor: int) -> Read:
    return lambda first, pages: os.pread(descriptor, pages * _PAGE_BYTES, first * _PAGE_BYTES)


def _read_slots(descriptor: int) -> list[_Slot | None]:
    """Read both slots in one go: in a thread each call costs a wait for Python's lock."""
    packed = os.pread(descriptor, 2 * SLOT_BYTES, 0)
    return [_unpacked(packed[:SLOT_BYTES]), _unpacked(packed[SLOT_BYTES:])]


def _unpacked(slot: bytes) -> _Slot | None:
    """Return (transaction, boot id, meta page), or None if the slot is not whole."""
    packed = slot[: _SLOT.size + meta_page.BYTES]
    if len(packed) < _SLOT.size + meta_page.BYTES:
        return None
    magic, checksum, number, boot = _SLOT.unpack_from(packed)
    meta = packed[_SLOT.size :]
    if magic != _MAGIC or checksum != crc32(_SLOT.pack(magic, 0, number, boot) + meta):
        return None
    return number, boot.rstrip(b"\0"), meta
