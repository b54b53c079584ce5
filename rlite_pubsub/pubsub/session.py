"""One client connection as delivery sees it: the names that it holds and what is still to be written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS
from rlite_pubsub.pubsub.outbox import Outbox
from rlite_pubsub.storage.agenda import OUTBOXES

if TYPE_CHECKING:
    from rlite_pubsub.durable.feed import Feed
    from rlite_pubsub.keyspace.topic.followers import Follow
    from rlite_pubsub.pubsub.hub import Hub

Names = dict[bytes, None]
"""An ordered set of names."""

_NO_NAMES: Names = {}


@mypyc_attr(allow_interpreted_subclasses=True)
class Session:
    """A receiver of messages. What becomes of what is said to it is its outbox's."""

    __slots__ = ("__weakref__", "closing", "dirty", "feed", "follows", "hub", "id", "names", "outbox", "protocol",
                 "said")  # fmt: skip

    def __init__(self, id: int, hub: Hub, outbox: Outbox | None = None) -> None:
        """Without an outbox of its own it takes what is said itself: `flush`."""
        self.id = id
        self.hub = hub
        self.protocol = 2
        self.outbox = outbox if outbox is not None else Outbox()
        self.said = self.outbox.said  # this turn
        self.closing = False  # no command is executed any more; closed once the outbox is empty
        self.dirty = False  # stands in hub.dirty
        self.feed: Feed | None = None  # of the durable subscriber that it is attached to
        self.follows: dict[tuple[int, bytes], Follow] | None = None  # by (database, name)
        self.names: list[Names] = [_NO_NAMES, _NO_NAMES, _NO_NAMES]  # by Kind.index

    @property
    def name_count(self) -> int:
        """Channels and patterns: the number that SUBSCRIBE and PSUBSCRIBE report."""
        return len(self.names[CHANNELS.index]) + len(self.names[PATTERNS.index])

    @property
    def shard_count(self) -> int:
        """Sharded channels: the number that SSUBSCRIBE reports."""
        return len(self.names[SHARDS.index])

    @property
    def holds_names(self) -> bool:
        """Whether any message may come for this session."""
        names = self.names
        return bool(names[0] or names[1] or names[2] or self.follows)

    def send(self, data: bytes) -> None:
        """Put bytes behind all that was said to this session before, messages of an open run included."""
        hub = self.hub
        if hub.open is not None and self.holds_names:
            hub.close_run()
        self.said.append(data)
        if not self.dirty:
            self.dirty = True
            hub.dirty.append(self)
            hub.agenda.due |= OUTBOXES

    @property
    def takes_more(self) -> bool:
        """Whether its peer has taken all so far, and is still there."""
        return not self.said

    def unacknowledged_bytes(self) -> int:
        """How much of what was said to it has not surely arrived at its peer."""
        return sum(map(len, self.said))

    @property
    def was_cut(self) -> bool:
        """Whether its connection has ended in a way in which its peer may not have read what had arrived there."""
        return False

    @property
    def address(self) -> str:
        """The peer's `ip:port`, or the socket's path."""
        return ""

    # -- what its outbox tells it

    def flush(self) -> None:
        """Take what was said. Called once a turn, after the commit, where the outbox leaves it to the session."""
        raise NotImplementedError

    def rouse(self) -> None:
        """There is something to take."""

    def stalled(self) -> None:
        """Its peer has not taken all."""

    def drained(self) -> None:
        """Its peer has taken what it would not take before."""

    def cut(self) -> None:
        """Its connection has broken."""
        self.close_now()

    # -- its end

    def close_now(self) -> None:
        """Close without waiting for the peer to read."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close without another word, because what was promised to it cannot be kept."""
        raise NotImplementedError
