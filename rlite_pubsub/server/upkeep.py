"""Care for the files of a server's store: it reports which processes keep pages of them, notices when all others have
closed it, and gives free pages back to the file system as often as `compact-every` says; and once nobody writes after
most of a large file has become free, as after FLUSHALL. In a store that is in use free pages are used again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from rlite_pubsub.storage.compaction import Compaction
from rlite_pubsub.storage.environment import Environment
from rlite_pubsub.storage.pages import noted
from rlite_pubsub.storage.pages.readers import TableLine
from rlite_pubsub.storage.store import Store

log = logging.getLogger("rlite_pubsub")

LOOK_SECONDS = 1.0
QUIET_SECONDS = 5.0
"""Nobody writes if there was no commit for so long."""
WASTED_BYTES = 64 << 20
"""A file that takes more of the disk than this..."""
WASTED_TIMES = 4
"""... and so many times what is live."""


class Upkeep:
    """Looks after the files of one server's store."""

    def __init__(self, store: Store, every_s: Callable[[], int], now: float) -> None:
        """`every_s`: the seconds between two compactions; 0 for none."""
        self._store = store
        self._every_s = every_s
        self._looked_at = 0.0
        self._compacted_at = now
        self._compaction: Compaction | None = None
        self._commit = -1  # the last one, when it was looked for
        self._quiet_since: float | None = None  # None: since then it was looked whether much is wasted
        self._noted: dict[Environment, dict[TableLine, int]] = {}  # old ones, since when

    def cron(self, now: float) -> None:
        """Called ten times a second. Raises StoreError."""
        self._store.look_for_others()
        if not self._looked_at <= now < self._looked_at + LOOK_SECONDS:
            self._looked_at = now
            for environment in (self._store.data, self._store.live):
                self._look_at_readers(environment, int(now * 1000))
            if self._compaction is None and self._is_much_wasted(now):
                self._compaction = Compaction(self._store)
        every_s = self._every_s()
        if every_s and self._compaction is None and not self._compacted_at <= now < self._compacted_at + every_s:
            self._compacted_at = now
            self._compaction = Compaction(self._store)
        if self._compaction is not None:
            self._go_on(self._compaction)

    def _is_much_wasted(self, now: float) -> bool:
        """Return True once after the last write, if most of a large file is free."""
        data = self._store.data
        commit = data.last_commit()
        if commit != self._commit:
            self._commit, self._quiet_since = commit, now
        if self._quiet_since is None or self._quiet_since <= now < self._quiet_since + QUIET_SECONDS:
            return False
        self._quiet_since = None
        sizes = data.account.sizes()
        return sizes.disk > max(WASTED_BYTES, WASTED_TIMES * sizes.live)

    def _look_at_readers(self, environment: Environment, now_ms: int) -> None:
        """Later readers must know since when the old ones have been there."""
        account, live = environment.account, self._store.live
        environment.look_at_readers()
        old = {each.reader: now_ms - int(each.age_s * 1000) for each in account.old_readers()}
        before = self._noted.get(environment)
        if before is None:
            before = live.read(lambda txn: noted.all(txn, environment))
            account.watch.adopt({reader: (now_ms - since) / 1000 for reader, since in before.items()}, monotonic())
            old = {each.reader: now_ms - int(each.age_s * 1000) for each in account.old_readers()}
        if old.keys() != before.keys():
            live.write(lambda txn: noted.put(txn, environment, old))
        self._noted[environment] = old

    def _go_on(self, compaction: Compaction) -> None:
        is_over = True
        try:
            is_over = not compaction.step()
        finally:
            if is_over:
                self._compaction = None
        if is_over and compaction.given_back:
            log.info("%d bytes of free pages were given back to the file system", compaction.given_back)
