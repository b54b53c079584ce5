"""The server's doorbell in its poller: somebody has put messages into our mailbox."""

from __future__ import annotations

from rlite_pubsub.pubsub.hub import Hub
from rlite_pubsub.pubsub.membership import Membership


class Bell:
    """Law 3: clear the bell, then take the mailbox until it is empty. The turn's end does the rest."""

    def __init__(self, membership: Membership, hub: Hub) -> None:
        """Of one who has joined."""
        bell = membership.bell
        assert bell is not None
        self._bell = bell
        self._own = membership.join()
        self._hub = hub

    def fileno(self) -> int:
        """What the poller watches."""
        return self._bell.fileno()

    def on_ready(self, events: int) -> None:
        """It was rung."""
        self._bell.clear()
        self.look()

    def look(self) -> None:
        """Take what is there, rung or not: a bell may lie, a mailbox cannot."""
        self._hub.receive(self._own)

    def on_failure(self) -> None:
        """The next ring, or the cron, takes what is left."""
