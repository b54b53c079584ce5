"""The writer lock of a log. There is no other, so each write takes it, whether other processes are there or not."""

from __future__ import annotations

from typing import Final

from rlite_pubsub.storage.locks.file_mutex import FileMutex
from rlite_pubsub.storage.locks.guarded_mutex import GuardedMutex
from rlite_pubsub.storage.locks.mutex import IS_TO_BE_HAD, THREAD, Mutex
from rlite_pubsub.storage.locks.writer_lock import WriterLock, WriterLocks

PLACE: Final = "data.log"


class LogWriterLock(WriterLock):
    """The lock, as one process has it open."""

    def __init__(self, locks: WriterLocks, *, is_alone: bool) -> None:
        super().__init__(locks, locks.folder / PLACE)
        self.alone = -1
        if is_alone:
            locks.bare_mutex(PLACE).make()
        self._opened()

    def be_alone(self) -> None:
        """It makes no difference."""

    def _opened(self) -> Mutex | FileMutex | GuardedMutex:
        if self.is_to_be_opened:
            self._thread_bits = THREAD if IS_TO_BE_HAD else 0
            self._go_by(self._locks.mutex(PLACE))
        assert self._mutex is not None
        return self._mutex

    def writing_thread(self) -> int:
        """Return the thread that is writing, in any process, by the kernel's number; 0: nobody, or it is not known."""
        return self._opened().holder()
