"""One of several processes that write to an LMDB file by the law of checkpoint.py, step by step as it is told.

    write         hold a pin, or take a checkpoint for it; and commit
    let_go        let go of the pin, if that may be
    release       let go of it whatever was written, as before a fork
    begin         PIN of a checkpoint
    take          a whole checkpoint
    sync, save    the next step of the one that was begun; a delta has only one
    at_once       a delta, if nobody has to be waited for
    clear         clear LMDB's table of readers of the dead
    punch         give free pages back

The disk is a second file, which has what was synced.
"""

from __future__ import annotations

import queue
import shutil
import sys
import threading
from pathlib import Path

import lmdb

from rlite_pubsub.storage.checkpoints import checkpoint as module
from rlite_pubsub.storage.checkpoints.checkpoint import Checkpoint, Pinned
from rlite_pubsub.storage.pages import holes, meta, readers

KEYS = 40


class PinningProcess:
    def __init__(self, path: Path, delta_bytes: int) -> None:
        self.disk = path.with_name("synced")
        self.path = path
        self.lmdb = lmdb.Environment(
            str(path), subdir=False, map_size=1 << 28, sync=False, metasync=False, max_spare_txns=0
        )
        self.checkpoint = Checkpoint(path, self.lmdb.begin, self.to_disk, delta_bytes=delta_bytes)
        self.pinned: Pinned | None = None
        self.said = ""  # of the last step
        self.thread: threading.Thread | None = None
        self.go = queue.SimpleQueue[str]()
        self.reached = queue.SimpleQueue[str]()

    def to_disk(self) -> None:
        if threading.current_thread() is self.thread:
            self.reached.put("sync")
            self.go.get()
        shutil.copyfile(self.path, self.disk)

    def write(self) -> None:
        checkpoint = self.checkpoint
        checkpoint.writers += 1
        if checkpoint.pin is None and not checkpoint.hold():
            checkpoint.take()
        with self.lmdb.begin(write=True) as txn:
            for key in range(KEYS):
                txn.put(b"%d" % key, b"%d" % txn.id() * 300)
        checkpoint.ended += 1
        checkpoint.writers -= 1

    def punch(self) -> None:
        txn = self.lmdb.begin(write=True)
        with open(self.path, "r+b") as file:
            latest = meta.read(file.fileno())
            assert latest is not None
            assert latest.transaction == txn.id() - 1
            needed = (latest.transaction, self.checkpoint.saved(), readers.oldest(self.lmdb.readers()))
            oldest = min(commit for commit in needed if commit is not None)
            _, pages = holes.punch(file.fileno(), latest, oldest, holes.BEGINNING, lambda: False)
        txn.abort()
        self.said = str(pages)

    def take(self) -> None:
        if self.thread is None:
            self.checkpoint.take()

    def let_go(self) -> None:
        self.checkpoint.let_go()

    def release(self) -> None:
        if self.thread is None:
            self.checkpoint.release()

    def clear(self) -> None:
        self.lmdb.reader_check()

    def begin(self) -> None:
        if self.thread is None:
            self.pinned = self.checkpoint.begin()
            self.thread = threading.Thread(target=self._finish, args=(self.pinned,), daemon=True)

    def sync(self) -> None:
        """Up to the moment before it is saved."""
        if self.thread is not None and not self.thread.is_alive():
            self.thread.start()
            if self.reached.get() == "sync":
                self.go.put("")
                self._end_if(self.reached.get())
            else:
                self._end_if("done")

    def save(self) -> None:
        if self.thread is not None and self.thread.is_alive():
            self.go.put("")
            self._end_if(self.reached.get())

    def at_once(self) -> None:
        self.checkpoint.take_at_once()

    def _end_if(self, reached: str) -> None:
        if reached == "done":
            assert self.thread is not None
            self.thread.join()
            self.thread = None

    def _finish(self, pinned: Pinned) -> None:
        self.checkpoint.finish(pinned)
        self.reached.put("done")

    def at(self, name: str) -> None:
        """A failpoint of checkpoint.py."""
        if name == "checkpoint-synced" and threading.current_thread() is self.thread:
            self.reached.put("synced")
            self.go.get()


def main() -> None:
    process = PinningProcess(Path(sys.argv[1]), int(sys.argv[2]) * 4096)
    module.boot_id = lambda: b"boot-1"  # type: ignore[assignment]
    process.checkpoint._boot = b"boot-1"
    module.failpoint = process.at  # type: ignore[assignment]
    holes.KEPT_PAGES = 1
    print("ready", flush=True)
    for line in sys.stdin:
        process.said = ""
        getattr(process, line.strip())()
        print("done", process.said, flush=True)


if __name__ == "__main__":
    main()
