"""A server's cold store: what it reads there, in a thread, and the process that seals (rlite_pubsub/cold/sealer.py).

It costs a server that has none nothing, for nothing of it is imported; Arrow is imported when the first block is read,
and in that thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from rlite_pubsub.cold.reader import BlockReader, is_installed
from rlite_pubsub.engine.settings.settings import Settings
from rlite_pubsub.extras import missing
from rlite_pubsub.keyspace.keyspace import Keyspace
from rlite_pubsub.keyspace.topic.cold_shelf import Shelf
from rlite_pubsub.server.companions.companion import Companion
from rlite_pubsub.server.listening import StartupError
from rlite_pubsub.server.turns import Turns
from rlite_pubsub.storage.cold import cold_home
from rlite_pubsub.storage.cold.cold_home import ColdHome
from rlite_pubsub.storage.environment import Txn
from rlite_pubsub.storage.store import Store
from rlite_pubsub.storage.topics.chunks import Chunk

log = logging.getLogger("rlite_pubsub")

NONE, LOCAL = b"no", b"local"
RESTART_SECONDS = 5.0
"""After the sealing process has died by itself."""
LOOK_SECONDS = 1.0
"""Until the blocks that another server has begun to write are noticed, if nobody asks for them."""
GRACE_SECONDS = 1.0
"""It may finish what it is at."""


class ColdStore:
    """Keeps the sealing process of one server running."""

    def __init__(self, store: Store, keyspace: Keyspace, settings: Settings, turns: Turns) -> None:
        self._store = store
        self._keyspace = keyspace
        self._settings = settings
        self._turns = turns
        self._threads: ThreadPoolExecutor | None = None
        self._is_over = False
        self._sealer = Companion("sealing", "rlite_pubsub.cold.sealer", RESTART_SECONDS, store.incidents.note)
        self._look_at = 0.0

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have it read, and seal if that is wanted. Raises StartupError."""
        self._loop = loop
        settings, keyspace = self._settings, self._keyspace
        self._set_grace(settings["cold-grace"])
        settings.on_change("cold-grace", self._set_grace)
        keyspace.cold.read_by(self._shelf)
        seals = settings["cold-store"] != NONE
        if seals and not is_installed():
            raise StartupError(missing("cold-store", "cold"))
        if seals or self._store.data.read(cold_home.has_blocks):
            self._store.data.read(keyspace.cold.begin)
        if seals:
            self._begin_sealing()
            for name in ("cold-block-size", "cold-block-age", "cold-grace", "appendfsync"):
                settings.on_change(name, self._begin_anew)

    def _shelf(self, txn: Txn) -> Shelf | None:
        """Return the shelf of what is read; None if nothing can be."""
        if not is_installed():
            return None
        home = cold_home.get(txn)
        if self._settings["cold-store"] != NONE:  # which the sealing process is about to write down
            home = ColdHome("", self._url)
        self._threads = ThreadPoolExecutor(1, "rlite-pubsub-cold")
        return Shelf(BlockReader(self._store.folder, home), self._run, lambda: int(self._settings["cold-cache"]))

    def _set_grace(self, seconds: int) -> None:
        self._keyspace.cold.keep(seconds * 1000)

    # -- reading

    def _run(self, work: Callable[[], Chunk], done: Callable[[Chunk | Exception], None]) -> None:
        def hand_over(future: Future[Chunk]) -> None:
            failure = future.exception()
            found = failure if isinstance(failure, Exception) else future.result()
            try:
                self._loop.call_soon_threadsafe(tell, found)
            except RuntimeError:
                pass  # the loop has ended, and the one that wanted it with it

        def tell(found: Chunk | Exception) -> None:
            done(found)
            self._turns.soon()

        assert self._threads is not None
        if self._is_over:
            return  # the one that waits for it goes with the server
        self._threads.submit(work).add_done_callback(hand_over)

    # -- sealing

    @property
    def seals_at(self) -> str | None:
        """Where blocks are written (cold/places.py), with its secrets; None: nothing is sealed."""
        return None if self._settings["cold-store"] == NONE else self._url

    @property
    def _url(self) -> str:
        word = self._settings["cold-store"]
        return "" if word in (LOCAL, NONE) else str(word.decode())

    def _begin_sealing(self) -> None:
        settings = self._settings
        self._sealer.begin(
            {
                "dir": str(self._store.folder),
                "url": self._url,
                "block_bytes": settings["cold-block-size"],
                "age_s": settings["cold-block-age"],
                "grace_s": settings["cold-grace"],
                "durability": self._store.data.durability,
                "quota_bytes": self._store.data.quota_bytes,
            }
        )

    def _begin_anew(self, _: object) -> None:
        self._begin_sealing()

    def cron(self, now: float) -> None:
        """Restart the process if it has died; only read, if another server has begun to seal."""
        if self._keyspace.cold.shelf is None and now >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            if is_installed() and self._store.data.read(cold_home.has_blocks):
                self._store.data.read(self._keyspace.cold.begin)
        self._sealer.cron(now)

    def stop(self) -> None:
        """Leave nothing running."""
        self._is_over = True
        self._sealer.end(GRACE_SECONDS)
        if self._threads is not None:
            self._threads.shutdown(wait=True, cancel_futures=True)
