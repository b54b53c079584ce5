"""What the store asks of an environment: a set of rows, in the order of their keys, that is changed by transactions.

A transaction is short, and is run here and nowhere else: `write(work)` commits what `work(txn)` did, or nothing of it.
`work` may be run more than once, so it touches nothing but its `txn`. A turn (turn.py) has one open for longer, from
`begin` to `end`.

A key's first byte says which database it belongs to (databases.py).

There are two: LMDB's (lmdb_environment.py), and the log's (log/environment.py), which has LMDB as its checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import lmdb

    from rlite_pubsub.storage.errors import StoreError
    from rlite_pubsub.storage.locks.writer_lock import WriterLock
    from rlite_pubsub.storage.pages.account import Sizes
    from rlite_pubsub.storage.pages.holes import Reached
    from rlite_pubsub.storage.pages.readers import OldReader, ReaderWatch, TableLine
    from rlite_pubsub.storage.turn import Turn

T = TypeVar("T")
Txn: TypeAlias = "lmdb.Transaction[bytes]"
Cursor: TypeAlias = "lmdb.Cursor[bytes]"
Durability: TypeAlias = Literal["always", "everysec", "no"]

SMALLEST_QUOTA_BYTES: Final = 1 << 20


class Safety(Protocol):
    """Whether commits are on the disk."""

    failure: StoreError | None
    """Why the last sync failed."""
    is_brief: bool
    """True if what is kept for the next write is let go of after each."""

    @property
    def writes(self) -> int:
        """How many transactions of this process have written."""

    @property
    def is_pinned(self) -> bool:
        """True if something is kept for the next write."""

    @property
    def is_behind(self) -> bool:
        """True if something is committed that is not on the disk."""

    def sync(self) -> None:
        """Bring everything committed to the disk. Raises StoreError."""

    def sync_at_once(self) -> bool:
        """Do that if it is quick. Returns False, having done nothing, if it is not."""

    def begin_sync(self) -> Any:
        """Note what is committed now; `finish_sync` brings that to the disk."""

    def finish_sync(self, begun: Any) -> None:
        """Bring to the disk what was committed when it began. Raises StoreError."""

    def safe_commit(self) -> int | None:
        """Return the last commit that is on the disk; None if there is nothing to say."""

    def let_go(self) -> bool:
        """Let go of what is kept for the next write. Returns False if something is not on the disk yet."""

    def call_when_grown(self, grown: Callable[[], None]) -> None:
        """Call `grown` when a sync is due because much was written."""

    def wait_for_no_disk(self) -> None:
        """Let writers not wait for a disk."""


class Room(Protocol):
    """How much may be added."""

    quota_bytes: int
    full: StoreError | None
    """Why additions are refused; None: they are not."""
    is_short: bool
    """True if there is so little that a message must be small."""

    def call_when_full(self, changed: Callable[[], None]) -> None:
        """Call `changed` when it becomes full, or has room again: in the middle of work."""

    def count(self) -> None:
        """Count what there is exactly from now on: somebody limits it."""

    def look(self) -> None:
        """Look how much room there is now."""

    def lack(self) -> StoreError | None:
        """Return why nothing can be added now; None if something can."""

    def is_free(self, txn: Txn) -> bool:
        """Return whether an addition may be tried after it was `full`."""

    def check(self, txn: Txn, bytes_before: int | None) -> None:
        """Raise what the commit of a turn would raise if the quota is exceeded."""


class Account(Protocol):
    """The use of an environment's files."""

    watch: ReaderWatch

    def sizes(self, most_records: int = ...) -> Sizes:
        """Return the sizes as they are now. Raises StoreError."""

    def readers(self) -> list[TableLine]:
        """Return the present readers. Raises StoreError."""

    def old_readers(self) -> list[OldReader]:
        """Return the readers that have been there for long, the oldest first."""

    def process_of(self, number: int) -> int:
        """Return the process that has this number in LMDB's table of readers, as it is called here; 0: unknown."""

    def held_by(self, reader: TableLine, most_records: int = ...) -> int:
        """Return at least how many bytes a reader keeps from being used again."""

    def give_back(self, place: Reached, seconds: float) -> tuple[Reached | None, int]:
        """Give free pages back to the file system for this long. Returns where to go on, and how many bytes."""


class Environment(Protocol):
    """Open from construction to `close`. Safe to share between threads, never with a forked child."""

    path: Path
    durability: Durability
    quota_bytes: int
    knows_changes: bool
    """Whether `changed_since` has anything to say."""

    @property
    def writer(self) -> WriterLock | None:
        """The lock of whoever writes; None if no other process can."""

    @property
    def safety(self) -> Safety: ...

    @property
    def room(self) -> Room: ...

    @property
    def account(self) -> Account: ...

    # -- transactions

    def read(self, work: Callable[[Txn], T]) -> T:
        """Run `work` on a snapshot."""

    def read_along(self, work: Callable[[Txn], T]) -> T:
        """Like `read`, for a question in the middle of a change: if a turn of this thread has a transaction open, run
        `work` in that one."""

    def write(self, work: Callable[[Txn], T], *, freeing: bool = False, adding_bytes: int = 0) -> T:
        """Run `work` in one transaction and commit it. Raises StoreFull if there is no room, except for work that is
        `freeing`; a caller that says how much it adds leaves room for removals."""

    def guard(self, work: Callable[[Txn], T]) -> T:
        """Run `work` while nobody writes."""

    def begin(self, turn: Turn, *, write: bool) -> Txn:
        """Open a transaction that stays open until `end`: a turn's. Raises StoreError."""

    def end(self, turn: Turn, *, commit: bool) -> None:
        """Commit what `begin` began, or undo it. Raises StoreError if the commit fails: then it is undone."""

    def drop(self, turn: Turn) -> None:
        """Take this thread out again where an interrupted `begin` or `end` may have left it in."""

    def told(self, error: Exception) -> Exception:
        """Translate an error of a turn's transaction into ours."""

    def last_commit(self) -> int:
        """Return a number that every commit of any process increases."""

    def changed_since(self, turn: Turn) -> list[bytes] | None:
        """Return the keys of the rows that were changed between the snapshots of the turn's last transaction and of
        this one, its own among them; None if that is not known."""

    # -- who writes

    def check_writer(self) -> None:
        """Raise StoreHeld if another process is writing."""

    def check_write(self) -> None:
        """Check that this process can write, before it does anything that cannot be undone. Raises StoreError."""

    def lend(self) -> bool:
        """Lend the right to write to another thread, which calls `borrow`; until `give_back`, the loop gets StoreHeld.
        Returns False, having changed nothing, if no loop of this process waits for its writer. Raises StoreHeld."""

    def borrow(self) -> None:
        """Make this the thread that writes."""

    def give_back(self) -> None:
        """Give the right to write back to the loop."""

    def share_commits(
        self,
        turn: Turn,
        call_later: Callable[[float, Callable[[], None]], object],
        call_from_thread: Callable[[Callable[[], None]], None],
    ) -> None:
        """Let the turns of a loop share commits while they come quickly."""

    def stop_sharing(self, turn: Turn) -> None:
        """Let these turns commit by themselves from now on."""

    def be_alone(self) -> None:
        """Note that the other processes that had the store open have gone."""

    # -- the disk

    def sync(self) -> None:
        """Bring everything committed to the disk, whatever the durability. Raises StoreError."""

    def sync_by(self, durability: Durability) -> None:
        """Set when commits are brought to the disk from now on."""

    def used_bytes(self) -> int:
        """Return how far into its files it has ever written."""

    def lack(self) -> StoreError | None:
        """Return why no message can be added now; None if one can."""

    def make_room(self, lack: StoreError, remove: Callable[[], bool], adding_bytes: int = 0) -> bool:
        """Make room for an addition that failed: call `remove`, which says whether there was anything to remove.
        Returns whether there may be room now. Raises StoreError."""

    def look_at_readers(self) -> None:
        """Clear the table of readers of dead ones, and log those that have been there for long."""

    def forget_pages(self) -> None:
        """Have what was read through the file's map not count as this process's memory."""

    # -- the end

    def condemn(self) -> None:
        """It is no longer at its path: every use raises StoreRemoved."""

    def close(self) -> None: ...
