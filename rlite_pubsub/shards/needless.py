"""Removes closed segments that nobody needs any more, wherever they are: those of a deleted queue, and those that
retention or QUEUE.DROP has taken out of a directory.

Law: the directory has forgotten a segment, in the commit that noted its name here, before its key is removed. The note
goes last. Whoever is killed in between removes the key once more: no other key ever has that name.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final

from rlite_pubsub.engine.shards.slots import slot_of
from rlite_pubsub.engine.waits.loop_turns import LoopTurns
from rlite_pubsub.protocol.errors import CommandError
from rlite_pubsub.storage.errors import StoreError, StoreHeld
from rlite_pubsub.storage.failpoint import failpoint
from rlite_pubsub.storage.topics import segments

if TYPE_CHECKING:
    from rlite_pubsub.engine.engine import Engine
    from rlite_pubsub.shards.member_talk import MemberTalk
    from rlite_pubsub.storage.store import Store

log: Final = logging.getLogger("rlite_pubsub")

_LOOK_S: Final = 1.0
_AT_ONCE: Final = 100
_GRACE_S: Final = 2.0


class _Over(Exception):
    """The server ends."""


class NeedlessSegments:
    """One server's."""

    def __init__(self, engine: Engine, store: Store, talk: MemberTalk) -> None:
        self._engine = engine
        self._store = store
        self._talk = talk
        self._turns = LoopTurns(engine, self._check, (StoreHeld,))
        self._thread: threading.Thread | None = None
        self._look_at = 0.0
        self._is_over = False
        self._said = ""

    def cron(self) -> None:
        """Begin, if there is something to remove. Raises StoreError."""
        now = time.monotonic()
        if self._engine.sharding.directory is None or now < self._look_at or self._is_over:
            return
        self._look_at = now + _LOOK_S
        if self._thread is not None and self._thread.is_alive():
            return
        names = self._store.data.read(lambda txn: segments.forsaken(txn, _AT_ONCE))
        if names:
            self._thread = threading.Thread(target=self._run, args=(names,), name="rlite-segments", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """The server ends; the rest is removed when it comes back."""
        self._is_over = True
        if self._thread is not None:
            self._thread.join(_GRACE_S)

    # -- in the thread

    def _check(self) -> None:
        if self._is_over:
            raise _Over

    def _run(self, names: list[bytes]) -> None:
        for name in names:
            try:
                self._check()
                if not self._engine.sharding.has(slot_of(name)):
                    self._talk.ask(name, b"TOPIC.DELETE", name)
                    failpoint("segment-removed")
                self._turns.do(partial(self._forget, name))
            except _Over:
                return
            except (OSError, CommandError, StoreError) as failure:
                self._note(name, str(failure) or type(failure).__name__)
            except Exception:
                log.exception("Unexpected failure while a segment was removed")

    def _forget(self, name: bytes) -> None:
        """By the loop."""
        engine = self._engine
        txn = engine.keyspace.writing()
        if engine.sharding.has(slot_of(name)):
            engine.keyspace.delete(0, name)
        segments.forget(txn, name)

    def _note(self, name: bytes, failure: str) -> None:
        if failure != self._said:
            self._said = failure
            log.info("Segment %s can't be removed now: %s", ascii(name), failure)
