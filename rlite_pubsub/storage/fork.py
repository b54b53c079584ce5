"""Open environments in a fork: the parent keeps them, the child has none.

LMDB's handles must not be used on both sides. The child closes its copies, which is harmless only if no transaction was
open at that moment; so the fork waits briefly for open ones to end. If one takes longer, the child keeps the copies and
never touches them.
"""

from __future__ import annotations

import os
import time
from typing import Protocol


class Forked(Protocol):
    """What a fork asks of an environment."""

    def shut(self, patience_s: float) -> bool: ...

    def reopen(self) -> None: ...

    def abandon(self, *, idle: bool) -> None: ...


open_here: set[Forked] = set()
_PATIENCE_S = 1.0
_TURN_S = 0.1
_shut: list[Forked] = []


def _shut_all() -> bool:
    for environment in list(open_here):
        if not environment.shut(_TURN_S):
            _reopen_all()
            return False
        _shut.append(environment)
    return True


def _reopen_all() -> None:
    while _shut:
        _shut.pop().reopen()


def _before() -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not _shut_all() and time.monotonic() < deadline:
        pass  # a thread inside one environment waited to enter another: let it through, and try again


def _in_child() -> None:
    idle = bool(_shut)
    _shut.clear()
    for environment in list(open_here):
        environment.abandon(idle=idle)
    open_here.clear()


os.register_at_fork(before=_before, after_in_parent=_reopen_all, after_in_child=_in_child)
