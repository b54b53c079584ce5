"""Moves slots of this member to others, in a thread, one departure after another (departure.py). Slots that were
given away and not taken yet come first. Slots that can't be moved now are tried again, and hold up no others.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.shards.directory import Member
from rlite_pubsub.replication.master_link import MasterRefused
from rlite_pubsub.shards.departure import CanNotMove, Departure
from rlite_pubsub.storage.errors import StoreError

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.storage.store import Store

log: Final = logging.getLogger("rlite_pubsub")

_RETRY_S: Final = 0.2
_GRACE_S: Final = 2.0
_SLOTS_AT_ONCE: Final = 256


class _Over(Exception):
    """The server ends."""


class Departures:
    """One server's."""

    def __init__(self, engine: Engine, store: Store) -> None:
        self._engine = engine
        self._store = store
        self._waiting: deque[tuple[Member, list[int]]] = deque()
        self._thread: threading.Thread | None = None
        self._current: Departure | None = None
        self._is_over = False
        self._wake = threading.Event()
        self._failure = ""
        engine.sharding.send_by(self._send, self._report)

    # -- by the loop

    def _send(self, member: Member, slots: list[int]) -> None:
        for at in range(0, len(slots), _SLOTS_AT_ONCE):
            self._waiting.append((member, slots[at : at + _SLOTS_AT_ONCE]))
        self.cron()

    def _report(self) -> tuple[int, str]:
        """Return how many slots are to be moved, and why the last try came to nothing."""
        return sum(len(slots) for _, slots in self._waiting) or len(self._engine.sharding.leaving), self._failure

    def cron(self) -> None:
        """Begin what is to be done, if nobody has begun it."""
        is_owing = self._waiting or self._engine.sharding.leaving
        if is_owing and not self._is_over and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._run, name="rlite-shards", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """The server ends; what was given away is brought to its end when it comes back."""
        self._is_over = True
        self._wake.set()
        current, thread = self._current, self._thread
        if current is not None:
            current.abandon()
        if thread is not None:
            thread.join(_GRACE_S)

    # -- in the thread

    def _check(self) -> None:
        if self._is_over:
            raise _Over

    def _run(self) -> None:
        while not self._is_over and (next_one := self._next()) is not None:
            member, slots = next_one
            self._current = Departure(self._engine, self._store, member, slots, self._check)
            try:
                self._current.go()
                self._failure = ""
                continue
            except _Over:
                return
            except (OSError, MasterRefused, StoreError, CanNotMove) as failure:
                self._note(member, str(failure) or type(failure).__name__)
            except Exception as failure:
                log.exception("Unexpected failure while slots were moved")
                self._failure = repr(failure)
            self._waiting.rotate(-1)  # one that can't be moved holds up no other
            self._wake.wait(_RETRY_S)

    def _next(self) -> tuple[Member, list[int]] | None:
        """Return the next slots to move; those given away already come first."""
        sharding = self._engine.sharding
        left = sharding.leaving
        if left:
            return next(iter(left.values())), list(left)
        while self._waiting:
            member, slots = self._waiting[0]
            if any(sharding.has(slot) for slot in slots):
                return member, [slot for slot in slots if sharding.has(slot)]
            self._waiting.popleft()
        return None

    def _note(self, member: Member, text: str) -> None:
        failure = f"{member.address.decode()}: {text}"
        if failure != self._failure:
            self._failure = failure
            log.warning("Slots can't be moved now to %s", failure)
