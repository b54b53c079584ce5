"""One LMDB environment: its transactions. Its parts have files of their own: LMDB's handle (handle.py), how much room
there is (room.py), and whether commits are safe (checkpoints/safety.py).

A transaction is short, and is run here and nowhere else: `write(work)` commits what `work(txn)` did, or nothing of it.
`work` may be run more than once (the map grows by running it again), so it touches nothing but its `txn`.

Without named databases: a key's first byte says which one it belongs to, which saves a root page in every commit for
each of them.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, TypeVar

import lmdb
from mypy_extensions import mypyc_attr

from rlite_pubsub.storage import fork
from rlite_pubsub.storage.boot import boot_id
from rlite_pubsub.storage.checkpoints.checkpoint import Checkpoint
from rlite_pubsub.storage.checkpoints.safety import Safety
from rlite_pubsub.storage.environment import SMALLEST_QUOTA_BYTES, Durability, Txn
from rlite_pubsub.storage.errors import DiskFull, StoreBusy, StoreError, StoreFull, StoreHeld, StoreUnwritable
from rlite_pubsub.storage.handle import NO_ROOM_ON_DISK, Handle
from rlite_pubsub.storage.journal.journal import Journal, journal_path
from rlite_pubsub.storage.journal.recording import touch
from rlite_pubsub.storage.journal.shared_commit import PACE, Pace, SharedCommit
from rlite_pubsub.storage.locks.gate import NestedTransaction
from rlite_pubsub.storage.locks.writer_lock import WriterLock
from rlite_pubsub.storage.pages.account import Account, FreePages
from rlite_pubsub.storage.pages.meta import LAST_PAGES
from rlite_pubsub.storage.pages.readers import name_of
from rlite_pubsub.storage.room import Room, data_bytes

if TYPE_CHECKING:
    from rlite_pubsub.storage.journal.shared_commit import CallFromThread, CallLater
    from rlite_pubsub.storage.turn import Turn

log: Final = logging.getLogger("rlite_pubsub")

T = TypeVar("T")
FIRST_MAP_BYTES: Final = 16 << 20
_RETRIES: Final = 100
_LEAST_BYTES: Final = 64 << 10
"""The free pages below which an addition is not worth trying."""
_PAUSE_S: Final = 0.005
_FIRST: Final[int] = LAST_PAGES[0]
_SECOND: Final[int] = LAST_PAGES[1]
_NOBODY_ELSE: Final = memoryview(bytes(8)).cast("Q")


@mypyc_attr(native_class=False)  # calls into lmdb are most of what it does, and tests stand in for parts
class LmdbEnvironment:
    """Open from construction to `close`. Safe to share between threads, never with a forked child."""

    def __init__(
        self,
        path: Path,
        durability: Durability,
        *,
        quota_bytes: int,
        first_map_bytes: int = FIRST_MAP_BYTES,
        checkpointed: bool = False,
        writer: WriterLock | None = None,
    ) -> None:
        """`checkpointed`: what is synced survives a power cut (checkpoint.py). Without `writer` this process is the
        only one that writes."""
        self.path = path
        self.durability = durability
        self.quota_bytes = max(quota_bytes, SMALLEST_QUOTA_BYTES)
        self.knows_changes = False
        self.writer = writer
        self._openings, self._alone = (writer.numbers, writer.alone) if writer is not None else (_NOBODY_ELSE, 0)
        map_bytes = min(first_map_bytes, self.quota_bytes)
        self.handle = Handle(path, map_bytes)
        self.safety = Safety(self.handle, checkpointed=checkpointed, writer=writer)
        self._sharing: Turn | None = None
        self.shared: SharedCommit | None = None
        """For turns that come quickly: see `share_commits`."""
        self.account = Account(self)
        self.room = Room(self.handle, self.safety, self.account, quota_bytes=self.quota_bytes, map_bytes=map_bytes)
        fork.open_here.add(self)

    def write(self, work: Callable[[Txn], T], *, freeing: bool = False, adding_bytes: int = 0) -> T:
        """Run `work` in one write transaction and commit it. A full map is grown up to the quota, then StoreFull.

        `freeing` is for work that removes: LMDB needs room even for that, so the map has a reserve beyond the quota.
        Even while that is open, other work may not leave the data larger than the quota. A caller that says how much it
        adds leaves room on the disk for removals, too: DiskFull if there is no more than that.
        """
        if adding_bytes:
            with self.handle.inside():
                self._look_ahead()
                self.room.provide(adding_bytes)
        checkpoint = self.safety.checkpoint
        if checkpoint is not None:
            checkpoint.writers += 1
        try:
            result = self._retried(self._written, work, freeing)
        finally:
            if checkpoint is not None:
                checkpoint.ended += 1
                checkpoint.writers -= 1
        if self.durability == "always":
            self.safety.sync()
        if self.safety.is_brief:
            self.safety.let_go_at_once()
        return result

    def lack(self) -> StoreError | None:
        """Return why no message can be added now; None if one can. Raises StoreError."""
        if self.room.is_short:
            with self.handle.inside():
                self._look_ahead()
        return self.room.lack()

    def make_room(self, lack: StoreError, remove: Callable[[], bool], adding_bytes: int = 0) -> bool:
        """Make room for an addition that failed: call `remove`, which says whether there was anything to remove. At a
        quota that is all. On a full disk it goes on until there is enough, and makes LMDB reuse it. Returns whether
        there may be room now. Raises StoreError; StoreHeld if others hold what was removed."""
        if not isinstance(lack, DiskFull):
            return remove()
        with self.handle.inside():
            self._look_ahead()
            enough_bytes = self.room.enough_bytes(adding_bytes)
        before = pages = self._free_pages(enough_bytes)
        is_enough = pages.usable < enough_bytes <= pages.free  # else these were in vain: no run of them was long enough
        while not is_enough and remove():
            pages = self._free_pages(enough_bytes)
            is_enough = pages.free >= enough_bytes
        if pages.free >= _LEAST_BYTES:
            # a caller that adds has asked before, and is in the middle of something; what was last removed comes later
            is_hurried = self.writer is not None and self.writer.is_hurried and not adding_bytes
            patience_s = 0.0 if is_hurried else self.safety.patience_s
            self._reclaim(pages.free * 3 // 4, patience_s)
        with self.handle.inside():
            self._look_ahead()
        return is_enough or self._free_pages(enough_bytes).usable > before.usable

    def _free_pages(self, most_bytes: int) -> FreePages:
        with self.handle.inside():
            return self.room.free_pages(most_bytes)

    def _reclaim(self, wanted_bytes: int, patience_s: float) -> None:
        """Make LMDB reuse what was removed: after another commit, and once nobody holds it."""
        if self._free_pages(wanted_bytes).settled < wanted_bytes:
            self.write(touch, freeing=True)
        if self.safety.may_unpin() and self._free_pages(wanted_bytes).usable < wanted_bytes:
            with self.handle.inside():
                self.safety.make_safe()
        began = monotonic()
        while self._free_pages(wanted_bytes).usable < wanted_bytes:
            waited_s = monotonic() - began
            if waited_s >= patience_s:
                raise StoreHeld(self.path, partial(_said, self.path, *self._oldest_reader()))
            sleep(_PAUSE_S)
            with self.handle.inside():
                self.handle.lmdb.reader_check()

    def _oldest_reader(self) -> tuple[int, int]:
        """Return its number and its process's id here; zeros if nobody reads."""
        oldest = min(self.account.readers(), key=lambda reader: reader.transaction, default=None)
        return (oldest.number, self.handle.process_of(oldest.number)) if oldest is not None else (0, 0)

    def check_writer(self) -> None:
        """Raise StoreHeld if another process is writing."""
        if self._openings[0] != self._alone:
            assert self.writer is not None
            self.writer.check()

    def check_write(self) -> None:
        """Check that this process can write, before it does anything that cannot be undone. Raises StoreError;
        StoreHeld if another process is writing, or has written something that must be safe first."""
        self.check_writer()
        checkpoint = self.safety.checkpoint
        if checkpoint is not None and (checkpoint.pin is None or checkpoint.ended >= self.room.tend_at):
            with self.handle.inside():
                self._prepare(checkpoint)

    def read(self, work: Callable[[Txn], T]) -> T:
        """Run `work` on a snapshot."""
        return self._retried(self._seen, work, False)

    def read_along(self, work: Callable[[Txn], T]) -> T:
        """Like `read`, for a question in the middle of a change: if a turn of this thread has a transaction open, run
        `work` in that one. Another transaction would commit half of the change first."""
        turn = self.handle.turns.get(get_ident())
        txn = None if turn is None else turn.txn
        return self.read(work) if txn is None else work(txn)

    def guard(self, work: Callable[[Txn], T]) -> T:
        """Run `work` while nobody writes. It does not write itself, so it needs no pin."""
        return self._retried(self._guarded, work, False)

    def lend(self) -> bool:
        """Lend the right to write to another thread, which calls `borrow`; until `give_back`, the loop gets StoreHeld.
        Called by a loop between two transactions. Returns False, having changed nothing, if no loop of this process
        waits for its writer. Raises StoreHeld if the lock cannot be had."""
        writer = self.writer
        if writer is None or not writer.is_loop:
            return False
        self.handle.end_own_turn()
        writer.lend()
        self._alone = -1  # a writer checks, whether there are other processes or not
        return True

    def borrow(self) -> None:
        """Make this the thread that writes."""
        assert self.writer is not None
        self.writer.borrow()

    def give_back(self) -> None:
        """Give the right to write back to the loop. That thread has no transaction open."""
        assert self.writer is not None
        self.writer.give_back()
        self._alone = self.writer.alone

    def begin(self, turn: Turn, *, write: bool) -> Txn:
        """Open a transaction that stays open until `end`: a turn's, see turn.py."""
        shared = self.shared
        if shared is not None:
            if (txn := shared.txn) is not None and turn is shared.turn:
                self.handle.turns[get_ident()] = turn
                turn.txn = txn
                turn.writes = write
                turn.seen = txn.id()
                turn.place = shared.count
                return txn
            self._let_share(shared)
        checkpoint = self.safety.checkpoint if write else None
        if checkpoint is not None:
            checkpoint.writers += 1  # only then look whether there is a pin: see `let_go`
        handle, room, me = self.handle, self.room, get_ident()
        try:
            for _ in range(_RETRIES):
                if room.wants_reserve and write:
                    room.open_reserve()
                gate = handle.gate
                inside = gate.inside  # the gate's `enter`, without the call
                if me in inside:
                    raise NestedTransaction
                inside.add(me)
                try:
                    if gate.owner:
                        gate.enter_after_owner(me)
                    if not handle.is_usable:
                        handle.check()
                    if checkpoint is not None and (checkpoint.pin is None or checkpoint.ended >= room.tend_at):
                        self._prepare(checkpoint)
                    if write and (handle.metas[_FIRST] > room.near_page or handle.metas[_SECOND] > room.near_page):
                        room.look()
                    if self._openings[0] != self._alone:
                        assert self.writer is not None
                        if write:
                            turn.is_locked = self.writer.take()
                        else:
                            self.writer.check_readers()
                    txn = handle.lmdb.begin(write=write)
                except lmdb.Error as error:
                    self._release(turn)
                    gate.leave()
                    trouble = error
                except BaseException:
                    self._release(turn)
                    gate.leave()
                    raise
                else:  # what interrupts this leaves something to `drop`
                    turn.txn = txn
                    turn.writes = write
                    handle.turns[me] = turn
                    turn.seen = txn.id() - write
                    turn.place = 0
                    turn.bytes_before = data_bytes(txn) if write and room.map_bytes > room.quota_bytes else None
                    if shared is not None and write and turn is shared.turn:
                        turn.txn = txn = shared.record(txn, self.durability != "always" and not gate.owner)
                    return txn
                self._make_way(trouble, freeing=False)
            raise StoreBusy(self.path, "its map or its reader table changes all the time") from trouble
        except BaseException:
            if checkpoint is not None:
                checkpoint.writers -= 1
            turn.writes = False
            raise

    def end(self, turn: Turn, *, commit: bool) -> None:
        """Commit what `begin` began, or undo it. Raises StoreError if the commit fails: then it is undone."""
        handle, me = self.handle, get_ident()
        shared = self.shared
        txn, turn.txn = turn.txn, None
        assert txn is not None
        if shared is not None:
            if txn is shared.txn:
                may_share = self.durability != "always" and not handle.gate.owner
                if not turn.writes or (commit and shared.joins(may_share)):
                    turn.writes = False
                    handle.turns[me] = shared
                    return
                txn = shared.leave()
            elif turn is not shared.turn:
                shared = None
        del handle.turns[me]
        is_committed = False
        trouble: lmdb.Error | None = None
        try:
            if not commit:
                txn.abort()
            else:
                if turn.bytes_before is not None:
                    self.room.check_turn(txn, turn.bytes_before)
                txn.commit()
                is_committed = True
        except StoreFull:
            txn.abort()
            raise
        except lmdb.Error as error:
            trouble = error
        except BaseException:  # a signal handler's: whoever keeps its traceback must not keep the transaction open
            is_committed = commit and _has_ended(txn)
            if not is_committed:
                txn.abort()
            raise
        finally:
            if is_committed:
                turn.commits += 1
            if turn.is_locked:
                turn.is_locked = False
                assert self.writer is not None
                self.writer.release()
            if turn.writes:
                turn.writes = False
                if (checkpoint := self.safety.checkpoint) is not None:
                    checkpoint.ended += 1
                    checkpoint.writers -= 1
            gate = handle.gate
            gate.inside.discard(me)
            if gate.owner:
                gate.tell_owner()
            if shared is not None:
                if is_committed:
                    shared.committed()
                else:
                    shared.undone()
        if trouble is not None:
            raise self.told(trouble) from trouble
        if self.safety.is_brief and commit:
            self.safety.let_go_at_once()

    def drop(self, turn: Turn) -> None:
        """Take this thread out again where an interrupted `begin` or `end` may have left it in. The turn has no
        transaction."""
        me = get_ident()
        if self.handle.turns.get(me) is turn:
            del self.handle.turns[me]
        if turn.writes:
            turn.writes = False
            if (checkpoint := self.safety.checkpoint) is not None:
                checkpoint.writers -= 1
        self._release(turn)
        self.handle.gate.leave()

    # -- one commit for several turns

    def share_commits(
        self, turn: Turn, call_later: CallLater, call_from_thread: CallFromThread, pace: Pace = PACE
    ) -> None:
        """Let the turns of a loop share commits while they come quickly (journal/shared_commit.py). `turn`: the one
        that executes its commands. Where there can be no journal, each commits by itself."""
        if self.shared is not None or self.writer is None:
            return  # another loop of this process does
        if not (boot := boot_id()):
            return
        try:
            journal = Journal(journal_path(self.path), boot)
        except OSError as trouble:
            log.warning("%s has no journal (%s): each turn is committed by itself", self.path, trouble)
            return
        self._sharing = turn
        self.shared = SharedCommit(
            self, turn, journal, self._openings, self.writer.alone, call_later, call_from_thread, pace
        )

    def stop_sharing(self, turn: Turn) -> None:
        """Let these turns commit by themselves from now on. Called by their loop; it does not raise."""
        shared = self.shared
        if shared is None or shared.turn is not turn:
            return
        try:
            shared.close()
        except StoreError as failure:
            log.error("Left in the journal to the next process that opens the store: %s", failure)
        self.shared = None

    def be_alone(self) -> None:
        """Note that the other processes that had the store open have gone."""
        writer = self.writer
        assert writer is not None
        writer.be_alone()
        if not writer.is_lent:
            self._alone = writer.alone
        if self.shared is not None:
            self.shared.alone = writer.alone

    def bring_home(self) -> None:
        """Commit what turns share, between two of them. Raises StoreError."""
        if self.shared is not None:
            turn = self._sharing
            assert turn is not None
            self.begin(turn, write=True)
            self.end(turn, commit=True)

    def is_roomy(self) -> bool:
        """Return whether whatever several turns add fits."""
        return self.room.is_roomy()

    def _let_share(self, shared: SharedCommit) -> None:
        """Before somebody else's transaction: have committed what a loop's turns share. Raises StoreError."""
        if shared.is_owing:
            shared.pay()
        if shared.txn is not None or shared.count:
            me = get_ident()
            if self.handle.turns.get(me) is shared:
                shared.give_way()
            elif shared.count and shared.payer != me:
                assert self.writer is not None
                shared.wait_until_home(self.writer.patience_s)

    def _release(self, turn: Turn) -> None:
        """Clean up after a failed `begin`, whether the writer's lock was taken or not."""
        turn.is_locked = False
        if self.writer is not None:
            self.writer.release_if_mine()

    def told(self, error: Exception) -> Exception:
        """Translate an error of a turn's transaction into ours, and fix for the next turn what can be fixed. No
        transaction of this thread may be open."""
        if not isinstance(error, lmdb.Error):
            return error
        if isinstance(error, lmdb.MapFullError):
            return self.room.say_over_quota()
        told = self.handle.told(error)
        if error.code in NO_ROOM_ON_DISK or (error.code == errno.EIO and isinstance(told, StoreUnwritable)):
            self.room.make_on_disk()
        return told

    def sync(self) -> None:
        """Bring everything committed to the disk, whatever the durability. Raises StoreError."""
        self.safety.sync()

    def sync_by(self, durability: Durability) -> None:
        """Set when commits are brought to the disk from now on."""
        if self.handle.turns:
            self.handle.end_own_turn()
        self.durability = durability

    def changed_since(self, turn: Turn) -> list[bytes] | None:
        """See environment.py: LMDB does not know."""
        return None

    def last_commit(self) -> int:
        """Return a number that every commit of any process increases."""
        with self.handle.inside():
            return self.handle.last_commit()

    def used_bytes(self) -> int:
        """Return how far into its file this environment has ever written: free pages within it are reused first."""
        with self.handle.inside():
            return self.handle.used_bytes()

    def look_at_readers(self) -> None:
        """Clear LMDB's table of dead readers, and log those that keep pages for long."""
        try:
            with self.handle.inside():
                self.handle.lmdb.reader_check()
            self.account.old_readers()
        except (StoreError, lmdb.Error) as failure:
            log.debug("%s: its readers can't be looked at: %s", self.path, failure)

    def forget_pages(self) -> None:
        """Remap the file: until then pages that were read through the map count as this process's memory. Not while a
        thread writes beside the loop, which would have to wait for it."""
        if self.writer is None or not self.writer.is_lent:
            self.room.forget_pages()

    # -- the end, and a fork

    def close(self) -> None:
        if self._sharing is not None and self.handle.turns.get(get_ident()) is self.shared:
            self.stop_sharing(self._sharing)
        with self.handle.gate.alone():
            if self.handle.is_open:
                self.safety.close()
                self._stop_writing()
                self.handle.close()
        fork.open_here.discard(self)

    def _stop_writing(self) -> None:
        self._openings, self._alone = _NOBODY_ELSE, 0
        if self.writer is not None:
            self.writer.close()

    def condemn(self) -> None:
        """Condemn it: it is no longer at its path, and every use raises StoreRemoved."""
        self.handle.condemn()

    def shut(self, patience_s: float) -> bool:
        """Let no transaction begin until `reopen`, once none is open: a fork must not copy one halfway through."""
        if self.shared is not None and self.handle.turns.get(get_ident()) is self.shared:
            self.shared.give_way()
        if not self.handle.gate.shut(patience_s):
            return False
        self.safety.release()
        return True

    def reopen(self) -> None:
        self.handle.gate.reopen()

    def abandon(self, *, idle: bool) -> None:
        """Forget it in a forked child, where it is not open. The copy is closed if that cannot harm the parent."""
        pins = self.safety.abandon()
        if self.shared is not None and self.shared.txn is not None:
            pins.append(self.shared.leave())
        self.shared = None
        self._stop_writing()
        self.handle.abandon(pins, idle=idle)

    # -- one transaction

    def _prepare(self, checkpoint: Checkpoint) -> None:
        """Obey the law of checkpoint.py (no write without a pin), and look how much room there is. Called inside the
        gate."""
        if checkpoint.pin is None:
            self.safety.hold(checkpoint)
        if checkpoint.ended >= self.room.tend_at:
            self.room.tend(checkpoint)

    def _look_ahead(self) -> None:
        metas, near_page = self.handle.metas, self.room.near_page
        if metas[_FIRST] > near_page or metas[_SECOND] > near_page:
            self.room.look()

    def _written(self, work: Callable[[Txn], T], freeing: bool) -> T:
        room, checkpoint = self.room, self.safety.checkpoint
        if checkpoint is not None and (checkpoint.pin is None or checkpoint.ended >= room.tend_at):
            self._prepare(checkpoint)
        self._look_ahead()
        writer = self.writer if self._openings[0] != self._alone else None
        try:
            if writer is not None and not writer.take():
                writer = None
            with self.handle.lmdb.begin(write=True) as txn:
                bytes_before = None if freeing or room.map_bytes <= room.quota_bytes else data_bytes(txn)
                result = work(txn)
                room.check(txn, bytes_before)
        except BaseException:
            if writer is not None:
                writer.release_if_mine()
            raise
        if writer is not None:
            writer.release()
        return result

    def _guarded(self, work: Callable[[Txn], T], freeing: bool) -> T:
        writer = self.writer if self._openings[0] != self._alone else None
        try:
            if writer is not None:
                writer.take()
            txn = self.handle.lmdb.begin(write=True)
            try:
                return work(txn)
            finally:
                txn.abort()
        finally:
            if writer is not None:
                writer.release_if_mine()

    def _seen(self, work: Callable[[Txn], T], freeing: bool) -> T:
        if self._openings[0] != self._alone:
            assert self.writer is not None
            self.writer.check_readers()
        with self.handle.lmdb.begin() as txn:
            return work(txn)

    def _retried(self, attempt: Callable[[Callable[[Txn], T], bool], T], work: Callable[[Txn], T], freeing: bool) -> T:
        handle, me = self.handle, get_ident()
        gate = handle.gate
        inside = gate.inside
        if handle.turns:
            handle.end_own_turn()
        if self.shared is not None:
            self._let_share(self.shared)
        for _ in range(_RETRIES):
            if self.room.wants_reserve:
                self.room.open_reserve()
            if me in inside:  # the gate's `enter`, without the call: what interrupts one must not leave this thread in
                raise NestedTransaction
            inside.add(me)
            try:
                if gate.owner:
                    gate.enter_after_owner(me)
                if not handle.is_usable:
                    handle.check()
                return attempt(work, freeing)
            except lmdb.Error as error:
                trouble = error
            finally:
                inside.discard(me)
                if gate.owner:
                    gate.tell_owner()
            self._make_way(trouble, freeing=freeing)
        raise StoreBusy(self.path, "its map or its reader table changes all the time") from trouble

    def _make_way(self, trouble: lmdb.Error, *, freeing: bool) -> None:
        """Remove the cause of a failure, so that the attempt can be repeated, or raise what it means."""
        if isinstance(trouble, lmdb.MapFullError):
            self.room.grow(freeing=freeing)
        elif isinstance(trouble, lmdb.MapResizedError):
            self.room.adopt_map()
        elif isinstance(trouble, lmdb.ReadersFullError | lmdb.BadRslotError):
            if not self.handle.lmdb.reader_check():
                raise self.handle.without_slots() from trouble
        else:
            told = self.handle.told(trouble)
            raise told from (None if told is trouble else trouble)


def _said(path: Path, number: int, process: int) -> str:
    who = name_of(number, process) if number else "others"
    return f"the disk of {path} is full, and {who} keeps what was removed from being used again"


def _has_ended(txn: Txn) -> bool:
    """Return whether a transaction that something interrupted in its commit was committed before."""
    try:
        txn.stat()
    except lmdb.Error:
        return True
    return False
