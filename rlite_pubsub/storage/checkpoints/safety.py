"""Making an environment's commits safe: at once if the disk is quick.

If it has checkpoints, nobody writes without a pin on the last of them (the law of checkpoint.py); and by law 10 the pin
goes when all is safe.

Law 9: a server's loop does not wait for a disk (`wait_for_no_disk`). What it cannot write before something is safe is
held back, as it is while another process writes (`StoreHeld`), and a thread makes it safe (syncing.py). Under
`appendfsync always` a writer waits for the disk anyway, and in place if the disk is quick. A program made the call
itself, and waits in its own thread.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Final

import lmdb

from rlite_pubsub.storage.checkpoints.checkpoint import Checkpoint, Pinned, safe_path
from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.locks.writer_lock import MOMENT_S, PATIENCE_S, WHOLE_S, WriterLock, said
from rlite_pubsub.storage.system import holder_of

if TYPE_CHECKING:
    from rlite_pubsub.storage.handle import Handle

log: Final = logging.getLogger("rlite_pubsub")

GROWN_BYTES: Final = 8 << 20
_GROWN_DIVISOR: Final = 8
"""A file that has grown this much since the last sync, and by this part, is synced early."""
UNSAFE_WRITES: Final = 512
"""So is one after this many writes: each has taken new pages, while those before it are still in the caches."""
MOMENT_SECONDS: Final = 0.002
"""A disk this quick is waited for in place, as Redis always does: having a thread do it takes longer."""
DELAYS: Final = 3
MOMENTS: Final = 50
"""A disk that was slow this many times in a row is not waited for until it was quick this many times. Once says
nothing:
the process may have been without a processor."""


class Safety:
    """Knows which commits of one environment survive a power cut, as one process sees it. Safe to share between
    threads."""

    def __init__(self, handle: Handle, *, checkpointed: bool, writer: WriterLock | None) -> None:
        self._handle = handle
        self._writer = writer
        self.checkpoint = Checkpoint(handle.path, self._pin, handle.to_disk) if checkpointed else None
        self.failure: StoreError | None = None
        """The time of the last sync, whichever part asked for it."""
        self._waits_for_disk = True
        """False: others wait for this process's writer."""
        self._on_grown: Callable[[], None] = _nobody
        self.is_brief = False
        """The disk is full, and others need what our pin keeps: it is released after each write, not once nobody
        writes."""
        self._held_since: float | None = None  # since when a write has been waiting until something is safe
        self._used_bytes = 0  # when it was last synced
        self._delays = 0  # how many times in a row the disk was slow
        self._slow = 0  # how many times it must be quick before it is waited for again

    def _pin(self) -> lmdb.Transaction[bytes]:
        """Open a read transaction. Raises StoreHeld."""
        if self._writer is not None and self._writer.numbers[0] != self._writer.alone:
            self._writer.check_readers()
        return self._handle.lmdb.begin()

    def call_when_grown(self, grown: Callable[[], None]) -> None:
        """Call `grown` when a sync would free many pages for reuse: it is called in the middle of work, so it may only
        ask for a sync."""
        self._on_grown = grown

    # -- making it safe

    def sync(self) -> None:
        """Bring everything committed to the disk, whatever the durability. Raises StoreError."""
        with self._handle.inside():
            self.sync_inside()

    def sync_at_once(self) -> bool:
        """Like `sync`, if that is one short write and needs no waiting. Returns False, having done nothing, if not."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return False
        with self._handle.inside(), self._handle.telling():
            return self._has_made_safe(checkpoint)

    def begin_sync(self) -> Pinned | None:
        """Do the part of `sync` that does not touch the disk, for a thread that must not wait for it. Raises
        StoreError."""
        if self.checkpoint is None:
            return None
        with self._handle.inside(), self._handle.telling():
            return self.checkpoint.begin()

    def finish_sync(self, pinned: Pinned | None) -> None:
        """Do the rest of `sync`, in any thread: what was committed when it began is on the disk then. Raises
        StoreError."""
        with self._handle.inside():
            self.sync_inside(pinned)

    def sync_inside(self, pinned: Pinned | None = None, patience_s: float = PATIENCE_S) -> None:
        """Like `sync`, for a caller inside the gate; waits this long for another process that saves a checkpoint."""
        began = perf_counter()
        used_bytes = self._handle.used_bytes()
        try:
            with self._handle.telling():
                self._handle.lmdb.reader_check()  # dead readers hold on to pages
                if self.checkpoint is None:
                    self._handle.to_disk()
                elif pinned is not None:
                    self.checkpoint.finish(pinned, patience_s)
                else:
                    self.checkpoint.take(patience_s)
        except StoreError as failure:
            self.failure = failure
            raise
        self.failure = None
        self._used_bytes = used_bytes
        if self._slow and perf_counter() - began <= MOMENT_SECONDS:
            self._slow -= 1

    def _has_made_safe(self, checkpoint: Checkpoint) -> bool:
        """Sync at once, if that was quick lately; return whether it is done."""
        if self._slow:
            return False
        began = perf_counter()
        if not checkpoint.take_at_once():
            return False
        if perf_counter() - began <= MOMENT_SECONDS:
            self._delays = 0
        elif self._delays < DELAYS - 1:
            self._delays += 1
        else:
            self._delays, self._slow = 0, MOMENTS
        self._used_bytes = self._handle.used_bytes()
        return True

    # -- before a write, inside the gate

    def hold(self, checkpoint: Checkpoint) -> None:
        """Pin the last checkpoint, and take a new one if others have written since. Raises StoreError."""
        with self._handle.telling():
            is_held = checkpoint.hold()
        if not is_held:
            self.make_safe()
        self._held_since = None

    def make_safe(self) -> None:
        """Like `sync`, for a caller inside the gate that needs it to go on. Raises StoreError; StoreHeld if nobody may
        wait for the disk, until a thread has done it."""
        if self._may_wait:
            self.sync_inside(patience_s=self.patience_s)
            return
        if self._held_since is None:
            self._held_since = monotonic()
        self._on_grown()
        if self.failure is not None:
            raise self.failure
        raise StoreHeld(self._handle.path, partial(_said, self._handle.path, self._held_since))

    def limit_unsafe(self, checkpoint: Checkpoint, used_bytes: int) -> None:
        """Sync early, so that not much is unsafe. Raises StoreError."""
        grown_bytes = used_bytes - self._used_bytes
        if checkpoint.unsafe < UNSAFE_WRITES and grown_bytes <= max(GROWN_BYTES, used_bytes // _GROWN_DIVISOR):
            return
        if not self._may_wait or not self._has_made_safe(checkpoint):
            self._on_grown()

    def wait_for_no_disk(self) -> None:
        """Do not wait for the disk: others wait for this process's writer."""
        self._waits_for_disk = False

    @property
    def _may_wait(self) -> bool:
        return self._waits_for_disk or self._writer is None or not self._writer.is_hurried

    @property
    def patience_s(self) -> float:
        """How long a writer may wait for another process that saves a checkpoint: on a full disk each does so after
        every write, and they meet often."""
        writer = self._writer
        if writer is None:
            return PATIENCE_S
        return writer.patience_s if not writer.is_hurried else WHOLE_S if self.is_brief else MOMENT_S

    # -- the pin

    @property
    def is_behind(self) -> bool:
        """True if this process may have committed something that is not safe."""
        checkpoint = self.checkpoint
        return checkpoint.is_behind if checkpoint is not None else False

    @property
    def is_pinned(self) -> bool:
        """True if this process holds on to the pages of a checkpoint."""
        return self.checkpoint is not None and self.checkpoint.pin is not None

    @property
    def writes(self) -> int:
        """How many writes of this process have ended."""
        checkpoint = self.checkpoint
        return checkpoint.ended if checkpoint is not None else 0

    def let_go(self) -> bool:
        """Law 10: let go of the pin, if nothing is being written and all writes are safe. Returns whether it did."""
        return self.checkpoint is None or self.checkpoint.let_go()

    def pin_last(self) -> Pinned:
        """Keep the last commit as it is, safe or not, until the caller ends it, which must be soon: law 10. Raises
        StoreError."""
        assert self.checkpoint is not None, "only what has checkpoints can be kept"
        with self._handle.inside(), self._handle.telling():
            return self.checkpoint.pin_last()

    def hold_briefly(self, is_brief: bool) -> None:
        """Set `is_brief`. While it is set, call `let_go_at_once` after each write."""
        self.is_brief = is_brief

    def let_go_at_once(self) -> None:
        """Make safe what was written, and let go of the pin; in a thread, where nobody waits for the disk."""
        if not self.is_pinned:
            return
        try:
            if not self.sync_at_once():
                if not self._may_wait:
                    self._on_grown()
                    return
                self.sync()
            self.let_go()
        except StoreError as failure:
            log.debug("%s: its pin stays: %s", self._handle.path, failure)

    def may_unpin(self) -> bool:
        """Return whether the pin holds on to pages that a new one would not. Raises StoreError."""
        checkpoint = self.checkpoint
        if checkpoint is None or checkpoint.pin is None:
            return False
        with self._handle.inside():
            return checkpoint.safe < self._handle.last_commit()

    def safe_commit(self) -> int | None:
        """Return the last commit of any process that survives a power cut; -1 if there is none, and None if none ever
        does. Raises StoreError."""
        if self.checkpoint is None:
            return None
        with self._handle.telling():
            return self.checkpoint.saved()

    # -- the end

    def close(self) -> None:
        """Make safe what is committed, if possible, and hold no page. The caller is alone in the gate."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return
        try:
            if checkpoint.is_behind:
                self.sync_inside()
        except StoreError as failure:
            log.warning("A power cut may lose the last commits: %s", failure)
        checkpoint.release()

    def release(self) -> None:
        """Release the pin before a fork, as a child that closes its copy would; nothing is written until the next
        pin."""
        if self.checkpoint is not None:
            self.checkpoint.release()

    def abandon(self) -> list[lmdb.Transaction[bytes]]:
        """Return the pins of a forked child's copy."""
        return self.checkpoint.abandon() if self.checkpoint is not None else []


def _said(path: Path, since: float) -> str:
    seconds = monotonic() - since
    holder = holder_of(safe_path(path))
    if holder not in (0, os.getpid()):
        return said(holder, safe_path(path), seconds)
    return f"what was written to {path} before is not on the disk after {seconds:.1f} seconds"


def _nobody() -> None:
    """Do nothing: nobody wants to know."""
