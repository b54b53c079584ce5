"""How a thread that waits is woken by another thread of its process: a descriptor, to be polled along with others.

A forked child closes its copies: on Linux both would be one counter.
"""

from __future__ import annotations

import os
import weakref

_open: weakref.WeakSet[Wake] = weakref.WeakSet()


class Wake:
    """Set by anybody, cleared by the one who waits."""

    def __init__(self) -> None:
        if hasattr(os, "eventfd"):
            self._reading = self._writing = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:
            self._reading, self._writing = os.pipe()
            os.set_blocking(self._reading, False)
            os.set_blocking(self._writing, False)
        _open.add(self)

    def fileno(self) -> int:
        return self._reading

    def set(self) -> None:
        """End the wait, or the next one if nobody waits now."""
        try:
            os.write(self._writing, _ONE)
        except BlockingIOError:
            pass  # set so often that it holds no more: as good as set
        except OSError:
            if self._writing >= 0:
                raise

    def clear(self) -> None:
        try:
            os.read(self._reading, 4096)
        except BlockingIOError:
            pass  # a wait can end without it

    def close(self) -> None:
        if self._reading < 0:
            return
        reading, writing = self._reading, self._writing
        self._reading = self._writing = -1
        _open.discard(self)
        os.close(reading)
        if writing != reading:
            os.close(writing)

    def __del__(self) -> None:
        self.close()


_ONE = (1).to_bytes(8, "little")


def _close_in_child() -> None:
    for wake in list(_open):
        wake.close()


os.register_at_fork(after_in_child=_close_in_child)
