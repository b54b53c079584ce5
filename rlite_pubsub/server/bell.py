"""The server's doorbell in its poller: somebody has put messages into our mailbox."""

from __future__ import annotations

from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.subscriber import Subscriber


class Bell:
    """Law 3: clear the bell, then take the mailbox until it is empty. The turn's end does the rest."""

    def __init__(self, subscriber: Subscriber, hub: Hub) -> None:
        self._subscriber = subscriber
        self._hub = hub

    def fileno(self) -> int:
        """What the poller watches."""
        return self._subscriber.bell.fileno()

    def on_ready(self, events: int) -> None:
        """It was rung."""
        self._subscriber.bell.clear()
        self.look()

    def look(self) -> None:
        """Take what is there, rung or not: a bell may lie, a mailbox cannot."""
        self._hub.receive(self._subscriber.id)

    def on_failure(self) -> None:
        """The next ring, or the cron, takes what is left."""
