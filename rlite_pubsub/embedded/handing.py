"""The durable subscribers that sessions of this process are attached to: when their mailboxes are read on and settled.

What has arrived is removed as the program comes back for more, but not at each message of many: so what is kept longer
than it need be, and comes again if the program is killed, is at most what was read in SETTLE_SECONDS.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from rlite_pubsub.durable.durables import Durables
from rlite_pubsub.durable.feed import Feed
from rlite_pubsub.embedded.handed_feed import HandedFeed
from rlite_pubsub.pubsub.session import Session
from rlite_pubsub.storage.errors import StoreError
from rlite_pubsub.storage.names.durables import Durable

if TYPE_CHECKING:
    from rlite_pubsub.embedded.host import Host
    from rlite_pubsub.embedded.session import EmbeddedSession

log = logging.getLogger("rlite_pubsub")

SETTLE_SECONDS = 0.01


class Handing:
    """Of one host. All methods are called under its lock."""

    def __init__(self, host: Host, clock: Callable[[], float]) -> None:
        self._host = host
        membership = host.membership
        self.durables = Durables(host.store, membership.post, membership.join, clock, _feed)
        self._clock = clock
        self._settles_later = False

    def tend(self, session: EmbeddedSession, feed: HandedFeed) -> None:
        """The program has come back for more. It may find that another has taken over."""
        is_settling = False
        if feed.come_back():
            now = time.monotonic()
            is_settling = now >= feed.settle_at
            if is_settling:
                feed.settle_at = now + SETTLE_SECONDS
                self._host.look()
            elif not self._settles_later:
                self._settles_later = True
                self._host.timers.add(SETTLE_SECONDS, self._settle_all)
        if session.feed is feed and (is_settling or (feed.is_behind and not session.outbox.inbox)):
            self._host.turn(lambda: self._go_on(feed, is_settling))

    def _go_on(self, feed: HandedFeed, is_settling: bool) -> None:
        if is_settling:
            self._settle(feed)
        self.durables.drained(feed.session)

    def _settle_all(self) -> None:
        self._settles_later = False
        for feed in self.durables.feeds.values():
            self._settle(feed)

    def _settle(self, feed: Feed) -> None:
        try:
            while feed.settle(self._host.store.data, self._clock()):
                pass
        except StoreError as failure:  # the cron tries again
            log.warning("Can't remove what has arrived from the mailbox of a durable subscriber: %s", failure)


def _feed(durable: Durable, session: Session) -> Feed:
    return HandedFeed(durable, session)
