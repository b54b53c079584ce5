"""One client connection as delivery sees it: the names that it holds and what is still to be written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mypy_extensions import mypyc_attr

from rlite_pubsub.pubsub.kinds import CHANNELS, PATTERNS, SHARDS
from rlite_pubsub.storage.agenda import OUTBOXES

if TYPE_CHECKING:
    from rlite_pubsub.pubsub.hub import Hub
    from rlite_pubsub.storage.names.durables import Durable

Names = dict[bytes, None]
"""An ordered set of names."""

_NO_NAMES: Names = {}


class DurableFeed(Protocol):
    """What a session is given out of a durable subscriber's mailbox."""

    durable: Durable
    """Whose mailbox it is."""
    chunk_bytes: int
    """What was said last: with its framing, and as often as it is received."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Session:
    """A receiver of messages. Whoever owns its socket (or has none) decides what becomes of its outbox."""

    __slots__ = ("__weakref__", "dirty", "feed", "follows", "hub", "id", "names", "outbox", "protocol")

    def __init__(self, id: int, hub: Hub) -> None:
        self.id = id
        self.hub = hub
        self.protocol = 2
        self.outbox: list[bytes] = []
        self.dirty = False  # stands in hub.dirty
        self.feed: DurableFeed | None = None  # of the durable subscriber that it is attached to
        self.follows: dict[tuple[int, bytes], object] | None = None  # its places in topics, by (database, name)
        self.names: list[Names] = [_NO_NAMES, _NO_NAMES, _NO_NAMES]  # by Kind.index

    def begin_feed(self, feed: DurableFeed) -> None:
        """It is attached to a durable subscriber: it is given what this has, and holds its names, to be filled in."""
        self.feed = feed
        self.forget_names()

    def end_feed(self) -> None:
        """It is attached no more."""
        self.feed = None
        self.forget_names()

    def forget_names(self) -> None:
        """It holds none, and has room of its own for some."""
        self.names = [{}, {}, {}]

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
        self.outbox.append(data)
        if not self.dirty:
            self.dirty = True
            hub.dirty.append(self)
            hub.agenda.due |= OUTBOXES

    @property
    def takes_more(self) -> bool:
        """Whether its peer has taken all so far, and is still there."""
        return not self.outbox

    def unacknowledged_bytes(self) -> int:
        """How much of what was said to it has not surely arrived at its peer."""
        return sum(map(len, self.outbox))

    @property
    def was_cut(self) -> bool:
        """Whether its connection has ended in a way in which its peer may not have read what had arrived there."""
        return False

    def flush(self) -> None:
        """Hand the outbox over: to a socket, or to whoever reads this session. Called once a turn, after the commit."""
        raise NotImplementedError

    def abort(self) -> None:
        """Close without another word, because what was promised to it cannot be kept."""
        raise NotImplementedError
