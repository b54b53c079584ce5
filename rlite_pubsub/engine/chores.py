"""What is done now and then by many parts of an engine: what one of them meets keeps no other from its work.

Each kind of error is logged once for each chore, until that has gone well again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from rlite_pubsub.storage.errors import StoreError, StoreRemoved

log = logging.getLogger("rlite_pubsub")


class Chores:
    """Of one thread that takes turns."""

    def __init__(self, undo: Callable[[Exception], None]) -> None:
        """`undo` undoes what a chore has left half done."""
        self._undo = undo
        self._told: dict[str, set[str]] = {}  # by the chore's name

    def do(self, name: str, work: Callable[[], object]) -> None:
        """Do one of them."""
        try:
            work()
        except StoreRemoved:
            pass  # the store itself says so, once
        except Exception as failure:
            self._tell(name, failure)
            try:
                self._undo(failure)
            except Exception as another:
                self._tell(f"{name}, and to undo it", another)
        else:
            if self._told:
                self._told.pop(name, None)

    def _tell(self, name: str, failure: Exception) -> None:
        kind = type(failure).__name__
        told = self._told.setdefault(name, set())
        level = logging.DEBUG if kind in told else logging.WARNING
        told.add(kind)
        if isinstance(failure, StoreError):
            log.log(level, "Failed %s: %s", name, failure)
        else:
            log.log(level, "Failed %s", name, exc_info=failure)
