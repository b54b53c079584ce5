"""This process among the subscribers of its store: it joins when it has names to record, or is where a durable
subscriber is attached."""

from __future__ import annotations

from rlite_pubsub.pubsub.membership import Membership


class Presence(Membership):
    """A Membership that may be begun."""

    def join(self) -> int:
        """Its id, after joining if need be. Raises StoreError."""
        return self._join().id
