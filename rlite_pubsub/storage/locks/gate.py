"""The gate that transactions pass, and where a change of the map (or a fork) waits until this process has none open.

LMDB leaves both to its caller: a map that is replaced under an open transaction is a crash, and so is a fork in the
middle of one. A second transaction in the same thread would wait forever for the first one's end: it is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident


class NestedTransaction(RuntimeError):
    """A transaction was begun inside another: pass the `txn` instead."""

    def __init__(self) -> None:
        super().__init__("this thread is inside a transaction already")


class Gate:
    """Lets many in at a time, or one alone.

    Every message goes in and out, without a lock as long as nobody wants to be alone: one thread notes that it is
    inside and then looks for an owner, the other becomes the owner and then looks who is inside, so that one of them
    sees the other.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self.inside: set[int] = set()  # threads; a turn's transaction goes in and out in place (environment.py)
        self.owner = 0

    def enter(self) -> None:
        me = get_ident()
        inside = self.inside
        if me in inside:
            raise NestedTransaction
        try:
            inside.add(me)
            if self.owner:
                self.enter_after_owner(me)
        except BaseException:  # a signal handler's: whoever called will not leave
            inside.discard(me)
            raise

    def leave(self, *_: object) -> None:
        self.inside.discard(get_ident())
        if self.owner:
            self.tell_owner()

    def tell_owner(self) -> None:
        """Tell the thread that wants to be alone that somebody has left."""
        with self._changed:
            self._changed.notify_all()

    __enter__, __exit__ = enter, leave  # it gets errors, and ignores them

    def enter_after_owner(self, me: int) -> None:
        """Wait outside: it has entered while another thread wants to be alone."""
        with self._changed:
            while self.owner and self.owner != me:
                self.inside.discard(me)
                self._changed.notify_all()
                self._changed.wait()
            self.inside.add(me)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep others out, wait for those inside to leave (except this thread itself), and let everyone in
        afterwards."""
        me = get_ident()
        with self._changed:
            while self.owner:
                self._changed.wait()
            self.owner = me
            while self.inside - {me}:
                self._changed.wait()
        try:
            yield
        finally:
            self.reopen()

    def shut(self, patience_s: float) -> bool:
        """Keep others out until `reopen`. Returns False, with everything as before, if those inside do not leave in
        time."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self.owner, patience_s):
                return False
            self.owner = get_ident()
            if not self._changed.wait_for(lambda: not self.inside, patience_s):
                self.owner = 0
                self._changed.notify_all()
                return False
            return True

    def reopen(self) -> None:
        with self._changed:
            self.owner = 0
            self._changed.notify_all()
