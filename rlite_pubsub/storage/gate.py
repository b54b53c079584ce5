"""Where transactions pass, and where a change of the map (or a fork) waits until none of this process is open.

LMDB leaves both to its caller: a map that is replaced under an open transaction is a crash, and so is a fork in the
middle of one. A second transaction in the same thread would wait for the first one's end, forever: it is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident


class NestedTransaction(RuntimeError):
    """A transaction was begun inside another: pass the `txn` instead."""


class Gate:
    """Many may be inside at a time, or one with all to itself.

    The way in and out is taken with every message, and without a lock as long as nobody wants to be alone: one notes
    that it is inside and then looks for an owner, the other becomes the owner and then looks who is inside, so that one
    of them sees the other.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: set[int] = set()
        self._owner = 0

    def enter(self) -> None:
        me = get_ident()
        inside = self._inside
        if me in inside:
            raise NestedTransaction("this thread is inside a transaction already")
        inside.add(me)
        if self._owner:
            self._enter_after_owner(me)

    def leave(self, *_: object) -> None:
        self._inside.discard(get_ident())
        if self._owner:
            with self._changed:
                self._changed.notify_all()

    __enter__, __exit__ = enter, leave  # which is told of errors, and does not mind

    def _enter_after_owner(self, me: int) -> None:
        with self._changed:
            while self._owner and self._owner != me:
                self._inside.discard(me)
                self._changed.notify_all()
                self._changed.wait()
            self._inside.add(me)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others out, wait for those inside to leave (but for this thread itself), and let all in afterwards."""
        me = get_ident()
        with self._changed:
            while self._owner:
                self._changed.wait()
            self._owner = me
            while self._inside - {me}:
                self._changed.wait()
        try:
            yield
        finally:
            self.reopen()

    def shut(self, patience_s: float) -> bool:
        """Keep others out until `reopen`; False, and it is as it was, if those inside do not leave in time."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._owner, patience_s):
                return False
            self._owner = get_ident()
            if not self._changed.wait_for(lambda: not self._inside, patience_s):
                self._owner = 0
                self._changed.notify_all()
                return False
            return True

    def reopen(self) -> None:
        with self._changed:
            self._owner = 0
            self._changed.notify_all()
